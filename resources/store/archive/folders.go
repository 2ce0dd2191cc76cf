package archive

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// folders are the folders of a data folder that a backup of each kind of server contains, and that a restore may write.
var folders = map[string][]string{
	"global": {"kds-tls"},
	"zone":   {meshesFolder, "tls", "membership"},
}

// meshesFolder has a folder for each mesh. The other folders contain only files.
const meshesFolder = "identity"

// fileName matches the names below those folders, including those of meshes. They have at most maxFileName bytes.
var fileName = regexp.MustCompile(`^[A-Za-z0-9][-_.A-Za-z0-9]*$`)

const maxFileName = 255

// Folders returns the folders of a data folder that belong in a backup of a "global" or "zone" server, or none for
// another kind. The caller may change the slice.
func Folders(server string) []string { return slices.Clone(folders[server]) }

// isHeld reports whether a file below one of the folders has a place and name that servers use.
func isHeld(path string) bool {
	parts := strings.Split(path, "/")
	if len(parts) != 2 && (len(parts) != 3 || parts[0] != meshesFolder) {
		return false
	}
	return !slices.ContainsFunc(parts[1:], func(part string) bool {
		return len(part) > maxFileName || !fileName.MatchString(part)
	})
}

// check refuses a file that no backup of this kind of server contains: a restore writes files whose content the server
// trusts.
func (f *File) check(server string) error {
	folder, _, _ := strings.Cut(f.Path, "/")
	if !slices.Contains(folders[server], folder) || !isHeld(f.Path) {
		return fmt.Errorf("file %q: a backup of a %s holds files of %s only, directly in the folder or in one of a mesh in %s", f.Path, server, strings.Join(folders[server], ", "), meshesFolder)
	}
	if len(f.Data) > maxFile {
		return fmt.Errorf("file %q has %d bytes, more than %d", f.Path, len(f.Data), maxFile)
	}
	return nil
}
