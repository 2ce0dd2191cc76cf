// Command health says of an object of Kubernetes, which it reads as JSON, what programs that deploy objects take it for:
// `health flux` asks the library that Flux has, `health argo SCRIPT` runs a script for Argo CD.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	answer, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "health:", err)
		os.Exit(1)
	}
	fmt.Println(answer)
}

func run(args []string) (string, error) {
	object := &unstructured.Unstructured{}
	if err := json.NewDecoder(os.Stdin).Decode(object); err != nil {
		return "", err
	}
	switch {
	case len(args) == 1 && args[0] == "flux":
		is, err := status.Compute(object)
		if err != nil {
			return "", err
		}
		return is.Status.String() + ": " + is.Message, nil
	case len(args) == 2 && args[0] == "argo":
		return argo(args[1], object.Object)
	}
	return "", fmt.Errorf("usage: health flux | health argo SCRIPT")
}

// argo runs a script as Argo CD does: obj is the object, and it returns a table with a status and a message.
func argo(script string, object map[string]any) (string, error) {
	l := lua.NewState()
	defer l.Close()
	l.SetGlobal("obj", value(l, object))
	if err := l.DoFile(script); err != nil {
		return "", err
	}
	table, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return "", fmt.Errorf("the script returns %s, want a table", l.Get(-1).Type())
	}
	return table.RawGetString("status").String() + ": " + table.RawGetString("message").String(), nil
}

// value returns a decoded JSON value in Lua.
func value(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case map[string]any:
		table := l.NewTable()
		for key, one := range v {
			table.RawSetString(key, value(l, one))
		}
		return table
	case []any:
		table := l.NewTable()
		for _, one := range v {
			table.Append(value(l, one))
		}
		return table
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	}
	return lua.LNil
}
