package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// probe finds the program it is given as $1, if there is one. Shells may find a path
// that cannot be executed.
const probe = `[ -z "$1" ] || { command -v "$1" >/dev/null && case $1 in /*) [ -x "$1" ];; esac; }`

// checkPrefix begins the names of the checks' folders and control groups, before their owner.
const checkPrefix = "check-"

// check starts a probe in the place of the agent and explains its failure. Its folder, in temp if that is there, has
// the role of a group's. where is a hint for the operator where the program must be.
func check(ctx context.Context, spec Spec, temp, where string, start starter) error {
	if spec.Command == "" {
		return errNoCommand
	}
	if _, err := os.Stat(temp); err != nil {
		temp = "" // gated has not run yet
	}
	dir, err := os.MkdirTemp(temp, checkPrefix+ownerText()+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if !spec.User.IsZero() {
		if err := os.Lchown(dir, spec.User.UID, spec.User.GID); err != nil {
			return err
		}
	}
	spec.Dir, spec.LogPath, spec.Data = dir, os.DevNull, ""
	p, err := start(ctx, spec, []string{shell, "-c", probe, "sh", program(spec.Command)}, dir, func() {})
	if err != nil {
		return err
	}
	p.CloseInput()
	var exit Exit
	for ev := range p.Events() {
		if ev.Exit != nil {
			exit = *ev.Exit
		}
	}
	said := strings.TrimSpace(exit.StderrTail)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case exit.Err != nil:
		return exit.Err
	case exit.Code == 0:
		return nil
	case said != "":
		return errors.New(said)
	}
	return fmt.Errorf("the agent's program %s is not found%s", program(spec.Command), where)
}

// program returns the program of a simple command line, "" if only a shell can
// tell.
func program(command string) string {
	word := strings.TrimLeft(strings.TrimPrefix(strings.TrimSpace(command), "exec "), " ")
	if quoted, ok := strings.CutPrefix(word, "'"); ok {
		word, rest, _ := strings.Cut(quoted, "'")
		if rest != "" && rest[0] != ' ' || quoted == word {
			return ""
		}
		return word
	}
	word, _, _ = strings.Cut(word, " ")
	if strings.ContainsAny(word, "\"'`$\\=;&|<>(){}[]*?~#!\n\t") {
		return ""
	}
	return word
}
