// Package buildinfo names the version a program was built from.
package buildinfo

import (
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
)

// number is the version of a build that no tag names.
const number = "0.1.0"

// version is set by the linker, see the Makefile: -X arizuko/pkg/buildinfo.version=v1.2.3.
var version string

// revisionLength is how much of a commit's hash is shown, in characters.
const revisionLength = 12

// devel is shown instead of a commit that is not known.
const devel = "devel"

var commit = regexp.MustCompile(`^[0-9a-f]{4,40}(-dirty)?$`)

// Version is the tag that the linker was given, such as v0.1.0, or v0.1.0-3-g4b93cc67 for a later
// commit. Without a tag it is number with the commit that the linker was given or that the Go tool
// recorded: "0.1.0 (4b93cc67)", "0.1.0 (4b93cc67-dirty)" if files were changed since, and
// "0.1.0 (devel)" if neither is known.
func Version() string {
	if version != "" {
		return named(version)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return named(devel)
	}
	return named(fromSettings(info.Settings))
}

// named adds the number to a commit. Anything else is the name of a version already.
func named(stamp string) string {
	if stamp == devel || commit.MatchString(stamp) {
		return number + " (" + stamp + ")"
	}
	return stamp
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
		return devel
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

// Print prints a program's name and version if args, the command line without the program's name,
// is --version alone, and reports whether it is.
func Print(out io.Writer, program string, args []string) bool {
	if len(args) != 1 || args[0] != "--version" && args[0] != "-version" {
		return false
	}
	fmt.Fprintf(out, "%s %s\n", program, Version())
	return true
}
