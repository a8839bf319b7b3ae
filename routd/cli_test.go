package main

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
	"arizuko/pkg/httpx"
	"arizuko/routd/internal/cli"
)

// cli runs one command line against the running routd.
func (s *service) cli(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	commands := cli.Commands(func() (*httpx.Client, error) { return s.Client, nil })
	err := commands[args[0]](t.Context(), args[1:], &out)
	return out.String(), err
}

func TestCommandLine(t *testing.T) {
	s := serve(t)
	for _, step := range []struct {
		args []string
		want string // a part of the output, lines with their spaces collapsed
	}{
		{[]string{"groups", "list"}, "no groups: add one"},
		{[]string{"routes", "list"}, "no routes: add one"},
		{[]string{"groups", "add", "acme/eng", "--name", "Eng \x1b[2J", "--config", `{"observe":"none"}`}, "group acme/eng is registered"},
		{[]string{"groups", "add", "--name=Acme", "acme"}, "group acme is registered"},
		{[]string{"groups", "add", "--name=Acme", "acme"}, "group acme is registered"},
		{[]string{"groups", "set", "acme", "--config", `{"agent":{"model":"m"}}`}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "folder: acme\nname: Acme\n"},
		{[]string{"groups", "show", "acme"}, "config: {\n\"agent\": {\n\"model\": \"m\"\n}\n}\n"},
		{[]string{"groups", "set", "acme", "--name="}, "group acme is changed"},
		{[]string{"groups", "show", "acme"}, "name: -\n"},
		{[]string{"groups", "show", "acme"}, "\"model\": \"m\""},
		{[]string{"routes", "add", "--seq", "10", "--match", "platform=telegram verb=mention", "--target", "acme/eng"}, "added route 1"},
		{[]string{"routes", "add", "-target=acme#observe", "-seq=20", `-impulse={"quiet_ms":5}`}, "added route 2"},
		{[]string{"groups", "list"}, "acme/eng Eng ?[2J 20"},
		{[]string{"routes", "list"}, "ID SEQ MATCH TARGET IMPULSE\n" +
			"1 10 platform=telegram verb=mention acme/eng -\n" +
			`2 20 (everything) acme#observe {"quiet_ms":5}` + "\n"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--sender", "telegram:7", "--sender-name", "Ann"}, "action observe\n" +
			"target acme#observe\nreason route_observe\nhome acme\nsurface telegram-group, about 1500 characters\n" +
			`why route 1: verb=mention does not match "message"` + "\nroute 2 (everything) leads to acme#observe\n"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--verb", "mention", "--thread", "5"}, "surface telegram-topic"},
		{[]string{"routes", "test", "--chat", "telegram:-1", "--kind", "dm", "--sticky", "acme"}, "reason sticky_target"},
		{[]string{"routes", "rm", "1", "2"}, "removed route 1\nremoved route 2\n"},
		{[]string{"groups", "rm", "acme/eng", "acme"}, "removed group acme/eng\nremoved group acme\n"},
	} {
		out, err := s.cli(t, step.args...)
		var lines []string
		for line := range strings.Lines(out) {
			lines = append(lines, strings.Join(strings.Fields(line), " ")+"\n")
		}
		if got := strings.Join(lines, ""); err != nil || !strings.Contains(got, step.want) {
			t.Errorf("routd %q: %v\n%s\nwant\n%s", step.args, err, got, step.want)
		}
	}
}

// What a shell wrote is shown with what is wrong with it.
func TestCommandLineShowsBadGroups(t *testing.T) {
	s := serve(t)
	s.shell(t, `INSERT INTO registered_groups (folder, created_at, config) VALUES ('odd', 0, '{"observe":7,"limits":{"pids":1}}')`)
	out, err := s.cli(t, "groups", "show", "odd")
	for _, want := range []string{"\"pids\": 1\n", "\nproblem: limits.pids: must be a number from 4", "\nproblem: observe: must be a text\n"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: no %q in\n%s", err, want, out)
		}
	}
}

func TestCommandLineMistakes(t *testing.T) {
	s := serve(t)
	for _, tc := range []struct {
		args  []string
		want  string
		usage bool // it is refused before routd is asked
	}{
		{[]string{"routes"}, "usage: routd routes list | add | rm | test", true},
		{[]string{"groups", "rename"}, "usage: routd groups list | show | add | set | rm", true},
		{[]string{"routes", "list", "all"}, `unexpected argument "all"`, true},
		{[]string{"routes", "add"}, "--target is missing", true},
		{[]string{"routes", "add", "--target", "acme", "--weight", "1"}, "-weight", true},
		{[]string{"routes", "add", "--target", "acme", "--seq", "first"}, "seq", true},
		{[]string{"routes", "add", "--target", "acme", "--impulse", "{"}, "no JSON", true},
		{[]string{"routes", "add", "--target", "acme"}, "folder acme is not registered", false},
		{[]string{"routes", "rm"}, "which route?", true},
		{[]string{"routes", "rm", "../groups/acme"}, "no route's id", true},
		{[]string{"routes", "rm", "77"}, "there is no route 77", false},
		{[]string{"routes", "test"}, "--chat is missing", true},
		{[]string{"routes", "test", "--chat", "7"}, "platform:room", false},
		{[]string{"groups", "add"}, "want one folder", true},
		{[]string{"groups", "add", "a", "b"}, "want one folder", true},
		{[]string{"groups", "add", "Acme"}, "folder", false},
		{[]string{"groups", "add", "acme", "--config", "x"}, "no JSON", true},
		{[]string{"groups", "add", "acme", "--config", `{"agnet":{}}`}, "did you mean agent?", false},
		{[]string{"groups", "show"}, "want one folder", true},
		{[]string{"groups", "show", "gone"}, "there is no group", false},
		{[]string{"groups", "set", "gone", "--name", "x"}, "there is no group", false},
		{[]string{"groups", "set", "gone", "--config", "{"}, "no JSON", true},
		{[]string{"groups", "rm"}, "which group?", true},
		{[]string{"groups", "rm", "../routes/1"}, "there is no group", false},
	} {
		_, err := s.cli(t, tc.args...)
		var exit *daemon.ExitError
		if err == nil || !strings.Contains(err.Error(), tc.want) || errors.As(err, &exit) != tc.usage {
			t.Errorf("routd %q: %v, want %q", tc.args, err, tc.want)
		}
	}
}

func TestCommandLineHelp(t *testing.T) {
	s := serve(t)
	for command, want := range map[string]string{"routes add -h": "-impulse", "groups list --help": "usage: routd groups list\n"} {
		out, err := s.cli(t, strings.Fields(command)...)
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(out, want) {
			t.Errorf("routd %s: %v\n%s", command, err, out)
		}
	}
}

func TestCommandLineWithoutSecret(t *testing.T) {
	missing := errors.New("no secret")
	commands := cli.Commands(func() (*httpx.Client, error) { return nil, missing })
	if err := commands["routes"](t.Context(), []string{"list"}, io.Discard); !errors.Is(err, missing) {
		t.Errorf("got %v", err)
	}
}
