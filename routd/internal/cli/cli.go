// Package cli has routd's subcommands for operators: they show and change routes and groups
// through a running routd.
package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"arizuko/pkg/buildinfo"
	"arizuko/pkg/cli"
	"arizuko/pkg/httpx"
)

// Commands returns the subcommands by name. connect makes the client of the running routd.
func Commands(connect func() (*httpx.Client, error)) map[string]cli.Func {
	c := &verbs{cli.Daemon{Name: "routd", Connect: connect}}
	return map[string]cli.Func{
		"access": c.access,
		"routes": byVerb("routes", map[string]cli.Func{
			"list": c.listRoutes, "add": c.addRoute, "rm": c.removeRoutes, "test": c.testRoutes,
		}, "list | add | rm | test"),
		"groups": byVerb("groups", map[string]cli.Func{
			"list": c.listGroups, "show": c.showGroup, "add": c.addGroup, "set": c.setGroup, "rm": c.removeGroups,
		}, "list | show | add | set | rm"),
		"hooks": byVerb("hooks", map[string]cli.Func{
			"list": c.listHooks, "add": c.addHook, "remove": c.removeHooks, "rotate": c.rotateHook, "test": c.testHook,
		}, "list | add | remove | rotate | test"),
	}
}

type verbs struct{ cli.Daemon }

// byVerb runs the subcommand that the first argument names.
func byVerb(name string, verbs map[string]cli.Func, usage string) cli.Func {
	return func(ctx context.Context, args []string, out io.Writer) error {
		if len(args) > 0 {
			if verb, ok := verbs[args[0]]; ok {
				return verb(ctx, args[1:], out)
			}
			if buildinfo.IsHelp(args[0]) {
				return help(ctx, verbs, out)
			}
		}
		return cli.UsageError("usage: routd %s %s", name, usage)
	}
}

// help prints the help of each subcommand.
func help(ctx context.Context, verbs map[string]cli.Func, out io.Writer) error {
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		if err := verbs[name](ctx, []string{"--help"}, out); !errors.Is(err, flag.ErrHelp) {
			return err
		}
	}
	return flag.ErrHelp
}

// jsonFlag checks a flag's value that must be JSON; "" is none.
func jsonFlag(name, value string) (json.RawMessage, error) {
	if value == "" {
		return nil, nil
	}
	if !json.Valid([]byte(value)) {
		return nil, cli.UsageError("--%s: %.80q is not JSON", name, value)
	}
	return json.RawMessage(value), nil
}

// remove deletes groups or routes one by one.
func (c *verbs) remove(ctx context.Context, noun string, names []string, path func(string) string,
	out io.Writer) error {
	for _, name := range names {
		if err := c.Call(ctx, http.MethodDelete, path(name), nil, nil); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "removed %s %s\n", noun, cli.PrintableLine(name)); err != nil {
			return err
		}
	}
	return nil
}
