package layers

import (
	"strings"

	"arizuko/pkg/msg"
)

// ResolveName finds the group that "@name" means in a chat whose group is home, ""
// for a chat without one. A single segment is looked for below home, then in home's
// world, then as that world itself; a path is taken as it is and must be in the
// world. Operators reach every group, from any chat.
func ResolveName(name, home string, operator bool, exists func(folder string) bool) (folder string, ok bool) {
	if msg.ValidFolder(name) != nil {
		return "", false
	}
	world := msg.World(home)
	if home != "" && !strings.Contains(name, "/") {
		for _, folder := range []string{home + "/" + name, world + "/" + name} {
			if exists(folder) {
				return folder, true
			}
		}
	}
	if (operator || msg.Within(name, world)) && exists(name) {
		return name, true
	}
	return "", false
}
