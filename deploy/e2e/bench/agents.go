package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// agentKind is an agent and the way in which it runs.
type agentKind struct {
	name    string
	prepare func(context.Context, *bench) (*agentSetup, error) // the error is a lack if this machine has not what it takes
}

// agentSetup is what it takes to run agents of a kind.
type agentSetup struct {
	agent   groupconfig.Agent
	env     []string     // of gated
	release func() error // once gated is gone
}

// lack says what a machine does not have.
type lack string

func (l lack) Error() string { return string(l) }

// measuredKind is a system with agents of one kind. That of its first chat is warm; those of the
// others are started when they are asked.
type measuredKind struct {
	name string
	*system
	release    func() error
	warm, cold samples
}

// agents measures what agents cost by the way they run: the bench agent in every runtime, and
// Claude Code with a model that answers at once. Since the bench agent takes no time for its
// answer, the time of a turn is gated's and the runtime's own.
func (b *bench) agents(ctx context.Context) (lines []line, err error) {
	colds := b.pick(10, 1)
	kinds, lines, err := b.startKinds(ctx, colds+1)
	defer func() {
		err = errors.Join(err, b.stop())
		for _, k := range kinds {
			err = errors.Join(err, k.release())
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := askKinds(ctx, kinds, b.pick(200, 2), colds); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		resident, err := k.agentMB(ctx)
		if err != nil {
			return nil, fmt.Errorf("memory, %s: %w", k.name, err)
		}
		lines = append(lines,
			line{what: k.name + ": inbound commit → outbound row, warm agent, p50", unit: "ms", measured: percentile(50, k.warm.toReply)},
			line{what: k.name + ": inbound commit → outbound row, agent to be started, p50", unit: "ms", measured: percentile(50, k.cold.toReply)},
			line{what: k.name + ": memory of an idle agent's processes", unit: "MB", measured: resident})
	}
	return lines, nil
}

// startKinds starts a system for each kind that this machine has, and a line for each that it has
// not. What it returns has to be released whatever the error.
func (b *bench) startKinds(ctx context.Context, chats int) (kinds []*measuredKind, missing []line, err error) {
	for _, k := range []agentKind{{"process", asProcess}, {"bwrap", asBwrap}, {"docker", asDocker}, {"claude as process", asClaude}} {
		setup, err := k.prepare(ctx, b)
		var lacking lack
		if errors.As(err, &lacking) {
			missing = append(missing, line{what: k.name, note: "left out: " + lacking.Error(), measured: math.NaN()})
			continue
		}
		if err != nil {
			return kinds, nil, fmt.Errorf("%s: %w", k.name, err)
		}
		kind := &measuredKind{name: k.name, release: setup.release}
		kinds = append(kinds, kind)
		if kind.system, err = b.serveKind(ctx, setup, chats); err != nil {
			return kinds, nil, err
		}
	}
	return kinds, missing, nil
}

// askKinds asks warm agents, and as many as there are colds for the first time, by turns.
func askKinds(ctx context.Context, kinds []*measuredKind, warms, colds int) error {
	systems := make([]*system, len(kinds))
	for i, k := range kinds {
		systems[i] = k.system
	}
	warm, err := askByTurns(ctx, warms, systems...)
	if err != nil {
		return err
	}
	for i, k := range kinds {
		k.warm = warm[i]
	}
	for chat := 1; chat <= colds; chat++ {
		for _, k := range kinds {
			got, err := k.ask(ctx, chat)
			if err != nil {
				return err
			}
			k.cold.add(got)
		}
	}
	return nil
}

// serveKind starts a system whose groups have agents of a kind.
func (b *bench) serveKind(ctx context.Context, setup *agentSetup, chats int) (*system, error) {
	s, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	s.Env = append(s.Env, setup.env...)
	if err := b.serve(ctx, s, chats, chats); err != nil {
		return nil, err
	}
	config, err := json.Marshal(groupconfig.Config{Agent: setup.agent})
	if err != nil {
		return nil, err
	}
	return s, s.st.Write(ctx, func(tx *store.Tx) error {
		for i := range chats {
			if _, err := tx.UpdateGroup(&msg.Group{Folder: groupFolder(i), Config: config}); err != nil {
				return err
			}
		}
		return nil
	})
}

func nothing() error { return nil }

func asProcess(context.Context, *bench) (*agentSetup, error) {
	return &agentSetup{agent: groupconfig.Agent{Runtime: groupconfig.Process}, release: nothing}, nil
}

func asBwrap(context.Context, *bench) (*agentSetup, error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil, lack("bubblewrap is not installed")
	}
	return &agentSetup{agent: groupconfig.Agent{Runtime: groupconfig.Bwrap}, release: nothing}, nil
}

// benchImage holds the bench agent while it is measured, and nothing else.
const benchImage = "arizuko-bench-agent:1"

func asDocker(ctx context.Context, b *bench) (*agentSetup, error) {
	if _, err := docker(ctx, "version"); err != nil {
		return nil, lack("docker finds no engine")
	}
	host, err := docker(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(host, "unix://") {
		return nil, lack("docker's engine is not on this machine")
	}
	if err := importAgent(ctx, b.bin); err != nil {
		return nil, err
	}
	return &agentSetup{
		agent: groupconfig.Agent{Runtime: groupconfig.Docker, Image: benchImage},
		env:   []string{"DOCKER_HOST=" + host, "AGENT_NETWORK=none"},
		release: func() error {
			_, err := docker(context.WithoutCancel(ctx), "rmi", "--force", benchImage)
			return err
		},
	}, nil
}

// importAgent makes the image of the bench agent in a folder.
func importAgent(ctx context.Context, bin string) (err error) {
	archive := exec.CommandContext(ctx, "tar", "--create", "--directory", bin, "agent")
	image := exec.CommandContext(ctx, "docker", "import", "--change", `ENTRYPOINT ["/agent"]`, "-", benchImage)
	if image.Stdin, err = archive.StdoutPipe(); err != nil {
		return err
	}
	if err := archive.Start(); err != nil {
		return err
	}
	out, err := image.CombinedOutput()
	if err := errors.Join(err, archive.Wait()); err != nil {
		return fmt.Errorf("docker import: %w\n%s", err, out)
	}
	return nil
}

// docker runs docker's client and returns what it prints.
func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %q: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// asClaude has Claude Code answer as the bench agent does, with a model of ours.
func asClaude(ctx context.Context, _ *bench) (*agentSetup, error) {
	const source = "arizuko/deploy/agents/claude"
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", source).Output()
	if err != nil {
		return nil, err
	}
	cli := filepath.Join(strings.TrimSpace(string(out)), "node_modules", ".bin", "claude")
	if _, err := os.Stat(cli); err != nil {
		return nil, lack("Claude Code is not installed: npm ci --prefix deploy/agents/claude")
	}
	bin, err := harness.Build("", source)
	if err != nil {
		return nil, err
	}
	model := anthropic.New(anthropic.Options{})
	model.SetModel(func(anthropic.Request) anthropic.Reply {
		return anthropic.Reply{Text: fmt.Sprintf("%d 1", time.Now().UnixNano())}
	})
	url, err := model.Start("127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(bin))
	}
	return &agentSetup{
		agent: groupconfig.Agent{Runtime: groupconfig.Process, Command: "exec " + filepath.Join(bin, "claude")},
		env: []string{
			"CLAUDE_COMMAND=" + cli, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + model.Key(),
			"AGENT_ENV=CLAUDE_COMMAND,ANTHROPIC_BASE_URL,ANTHROPIC_API_KEY",
		},
		release: func() error { return errors.Join(model.Close(), os.RemoveAll(bin)) },
	}, nil
}

// agentMB is what the processes of the first chat's agent occupy, in 10⁶ bytes.
func (k *measuredKind) agentMB(ctx context.Context) (total float64, err error) {
	runs, err := k.st.UnendedRuns(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(runs, func(r *msg.Run) bool { return r.Folder == groupFolder(0) })
	if i < 0 {
		return 0, errors.New("the agent was not kept warm")
	}
	pids, err := processes(ctx, runs[i])
	for _, pid := range pids {
		resident, e := residentMB(pid)
		err = errors.Join(err, e)
		total += resident
	}
	return total, err
}

// processes are those of a run: what gated started for it, which with docker is the client, and
// what is in the container.
func processes(ctx context.Context, r *msg.Run) ([]int, error) {
	pids := tree(r.PID)
	if r.Runtime != string(groupconfig.Docker) {
		return pids, nil
	}
	inside, err := container(ctx, r.Label)
	if err != nil {
		return nil, err
	}
	return append(pids, tree(inside)...), nil
}

// container is the first process of the container with the labels.
func container(ctx context.Context, labels string) (pid int, err error) {
	args := []string{"ps", "--quiet"}
	for _, label := range strings.Fields(labels) {
		args = append(args, "--filter", "label="+label)
	}
	id, err := docker(ctx, args...)
	if err != nil {
		return 0, err
	}
	text, err := docker(ctx, "inspect", "--format", "{{.State.Pid}}", id)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// tree is a process and those below it.
func tree(pid int) []int {
	all := []int{pid}
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // the pattern is good
	for _, path := range lists {
		list, _ := os.ReadFile(path) // of a thread that may have ended
		for _, field := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, tree(child)...)
			}
		}
	}
	return all
}
