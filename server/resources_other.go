//go:build !linux

package server

import "errors"

func diskRoom(string) (room, error) { return room{}, errors.ErrUnsupported }

func descriptors() (open, limit uint64, err error) { return 0, 0, errors.ErrUnsupported }
