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
	factrows "arizuko/pkg/facts/rows"
	"arizuko/pkg/groupconfig"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/fakes/anthropic"
)

// agentKind is an agent in a runtime.
type agentKind struct {
	name    string
	prepare func(context.Context, *bench) (*agentSetup, error) // returns unavailable if the machine lacks something
}

// agentSetup lets gated run agents of a kind.
type agentSetup struct {
	agent   groupconfig.Agent
	env     []string     // of gated
	release func() error // called after gated has stopped
}

// unavailable is the reason why a kind cannot run on this machine.
type unavailable string

func (u unavailable) Error() string { return string(u) }

// measuredKind is a system with agents of one kind. The agent of the first chat is warm, those of the
// other chats are cold until they are asked.
type measuredKind struct {
	name       string
	system     *system
	release    func() error
	warm, cold samples
}

// agents measures the bench agent in every runtime, and Claude Code with a fake model that answers at
// once. The bench agent takes no time to answer, so the time of a turn is that of gated and the runtime.
func (b *bench) agents(ctx context.Context) (figures []figure, err error) {
	cold := b.pick(10, 1)
	kinds, figures, err := b.startKinds(ctx, cold+1)
	defer func() {
		err = errors.Join(err, b.stopSystems())
		for _, k := range kinds {
			err = errors.Join(err, k.release())
		}
	}()
	if err != nil {
		return nil, err
	}
	if err := askKinds(ctx, kinds, b.pick(200, 2), cold); err != nil {
		return nil, err
	}
	for _, k := range kinds {
		resident, err := k.agentMB(ctx)
		if err != nil {
			return nil, fmt.Errorf("memory of %s: %w", k.name, err)
		}
		figures = append(figures,
			figure{name: k.name + ": inbound commit → outbound row, warm agent, p50", unit: "ms",
				measured: percentile(50, k.warm.toReply)},
			figure{name: k.name + ": inbound commit → outbound row, cold agent, p50", unit: "ms",
				measured: percentile(50, k.cold.toReply)},
			figure{name: k.name + ": memory of an idle agent's processes", unit: "MB", measured: resident})
	}
	return figures, nil
}

// startKinds starts a system for each kind that the machine can run, and returns a figure for each
// other kind. The caller releases the kinds, even after an error.
func (b *bench) startKinds(ctx context.Context, chats int) (kinds []*measuredKind, missing []figure, err error) {
	for _, k := range []agentKind{{"process", asProcess}, {"bwrap", asBwrap}, {"docker", asDocker},
		{"claude as process", asClaude}} {
		setup, err := k.prepare(ctx, b)
		var reason unavailable
		if errors.As(err, &reason) {
			missing = append(missing, figure{name: k.name, note: "not measured: " + reason.Error(),
				measured: math.NaN()})
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

// askKinds asks the warm agents of all kinds alternately, and then cold ones.
func askKinds(ctx context.Context, kinds []*measuredKind, warm, cold int) error {
	systems := make([]*system, len(kinds))
	for i, k := range kinds {
		systems[i] = k.system
	}
	got, err := askAlternately(ctx, warm, systems...)
	if err != nil {
		return err
	}
	for i, k := range kinds {
		k.warm = got[i]
	}
	for chat := 1; chat <= cold; chat++ {
		for _, k := range kinds {
			got, err := k.system.adapter.ask(ctx, chat)
			if err != nil {
				return err
			}
			k.cold.add(got)
		}
	}
	return nil
}

// serveKind starts a system with agents of a kind.
func (b *bench) serveKind(ctx context.Context, setup *agentSetup, chats int) (*system, error) {
	s, err := b.newSystem(ctx)
	if err != nil {
		return nil, err
	}
	s.instance.Env = append(s.instance.Env, setup.env...)
	if err := s.serve(ctx, chats, chats); err != nil {
		return nil, err
	}
	config, err := json.Marshal(groupconfig.Config{Agent: setup.agent, Rate: new(int)})
	if err != nil {
		return nil, err
	}
	return s, s.adapter.store.Write(ctx, func(tx *store.Tx) error {
		for i := range chats {
			if err := storetest.SetConfig(tx, groupFolder(i), config); err != nil {
				return err
			}
		}
		return nil
	})
}

func noRelease() error { return nil }

func asProcess(context.Context, *bench) (*agentSetup, error) {
	return &agentSetup{agent: groupconfig.Agent{Runtime: groupconfig.Process}, release: noRelease}, nil
}

func asBwrap(context.Context, *bench) (*agentSetup, error) {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil, unavailable("bubblewrap is not installed")
	}
	return &agentSetup{agent: groupconfig.Agent{Runtime: groupconfig.Bwrap}, release: noRelease}, nil
}

// benchImage is an image with the bench agent, and nothing else. It is removed after the measurement.
const benchImage = "arizuko-bench-agent:1"

func asDocker(ctx context.Context, b *bench) (*agentSetup, error) {
	if _, err := docker(ctx, "version"); err != nil {
		return nil, unavailable("no docker engine")
	}
	host, err := docker(ctx, "context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(host, "unix://") {
		return nil, unavailable("docker engine is not on this machine")
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

// importAgent makes benchImage from the bench agent in a folder.
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

// docker runs the docker client and returns its output.
func docker(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("docker %q: %w\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// asClaude runs Claude Code with a fake model that answers as the bench agent does.
func asClaude(ctx context.Context, _ *bench) (*agentSetup, error) {
	const source = "arizuko/deploy/agents/claude"
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", source).Output()
	if err != nil {
		return nil, err
	}
	cli := filepath.Join(strings.TrimSpace(string(out)), "node_modules", ".bin", "claude")
	if _, err := os.Stat(cli); err != nil {
		return nil, unavailable("Claude Code is not installed: npm ci --prefix deploy/agents/claude")
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
			"AGENT_READABLE=" + bin + "," + filepath.Join(strings.TrimSpace(string(out)), "node_modules"),
		},
		release: func() error { return errors.Join(model.Close(), os.RemoveAll(bin)) },
	}, nil
}

// agentMB returns the memory of all processes of the first chat's agent, in 10⁶ bytes.
func (k *measuredKind) agentMB(ctx context.Context) (total float64, err error) {
	runs, err := factrows.UnendedRuns(ctx, k.system.adapter.store.Reader)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(runs, func(r *msg.Run) bool { return r.Folder == groupFolder(0) })
	if i < 0 {
		return 0, errors.New("warm agent has no run")
	}
	pids, err := processes(ctx, runs[i])
	for _, pid := range pids {
		resident, e := residentMB(pid)
		err = errors.Join(err, e)
		total += resident
	}
	return total, err
}

// processes returns the pids of a run: the process that gated started, which with docker is the client, and those in
// the container.
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

// container returns the pid of the first process in the container with the labels.
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

// tree returns a process and its descendants.
func tree(pid int) []int {
	all := []int{pid}
	for _, child := range harness.Children(pid) {
		all = append(all, tree(child)...)
	}
	return all
}
