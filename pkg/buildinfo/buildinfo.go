// Package buildinfo names the version a program was built from.
package buildinfo

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
)

// version is set by the linker, see the Makefile: -X arizuko/pkg/buildinfo.version=v1.2.3.
var version string

// revisionLength is how much of a commit's hash is shown, in characters.
const revisionLength = 12

// Version is what the linker was given, `git describe` of the tree that was built, or else the
// commit that the Go tool recorded, followed by -dirty if files were changed since; "devel"
// where neither is known.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	return fromSettings(info.Settings)
}

func fromSettings(settings []debug.BuildSetting) string {
	value := func(key string) string {
		i := slices.IndexFunc(settings, func(s debug.BuildSetting) bool { return s.Key == key })
		if i < 0 {
			return ""
		}
		return settings[i].Value
	}
	revision := value("vcs.revision")
	if revision == "" {
		return "devel"
	}
	revision = revision[:min(revisionLength, len(revision))]
	if value("vcs.modified") == "true" {
		revision += "-dirty"
	}
	return revision
}

// Help prints the usage if args, the command line without the program's name, is --help alone, and
// reports whether it is.
func Help(out io.Writer, usage string, args []string) bool {
	if len(args) != 1 || !IsHelp(args[0]) {
		return false
	}
	fmt.Fprintln(out, usage)
	return true
}

// IsHelp reports whether an argument asks for help, as it does for package flag.
func IsHelp(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }

// Print prints a program's name, its version and that of Go if args, the command line without the
// program's name, is --version alone, and reports whether it is.
func Print(out io.Writer, program string, args []string) bool {
	if len(args) != 1 || args[0] != "--version" && args[0] != "-version" {
		return false
	}
	fmt.Fprintf(out, "%s %s (%s)\n", program, Version(), runtime.Version())
	return true
}
