package runtime

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"arizuko/pkg/groupconfig"
)

// Docker runs agents in containers, through docker's command line client. The
// engine must see the data folder under the same path as gated.
type Docker struct {
	Client   string   // the client's command line, its words separated by spaces
	Environ  []string // gated's environment; the client gets the variables that it needs
	Instance string   // marks the containers of this instance, see InstanceOf
	Network  string   // as docker run --network takes it, or NetworkAsk
}

const (
	// workspace is the group's folder in a container, and its HOME.
	workspace = "/workspace"
	// askNetwork is the engine's network for agents with NetworkAsk. It must be internal.
	askNetwork = "arizuko-ask"
	// dockerWait bounds one call of the client that does not run an agent.
	dockerWait = 10 * time.Second
	// removeWait bounds the removal of a container that is left after its client.
	removeWait = 20 * time.Second
	// dockerRelay is how long an agent's output may take through the engine and its client: a few milliseconds,
	// unless the machine is very busy. A tool call comes by the network, which is faster.
	dockerRelay = 200 * time.Millisecond
	// dockerFailed is docker run's exit code if there was no container.
	dockerFailed = 125
)

// InstanceOf names an instance by its data folder, an absolute path.
func InstanceOf(data string) string {
	sum := sha256.Sum256([]byte(data))
	return fmt.Sprintf("%x", sum[:6])
}

// Check asks the engine for the image.
func (d Docker) Check(ctx context.Context, spec Spec) error {
	if spec.Image == "" {
		return errNoImage
	}
	if _, err := d.call(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return err
	}
	_, err := d.call(ctx, "image", "inspect", "--format", "{{.Id}}", spec.Image)
	return err
}

var errNoImage = &SetupError{errors.New("no image is set: set AGENT_IMAGE or the group's agent.image")}

// Start runs a container of spec.Image with the group's folder at /workspace.
func (d Docker) Start(ctx context.Context, spec Spec) (*Proc, error) {
	if spec.Image == "" {
		return nil, errNoImage
	}
	client, err := d.client()
	if err := errors.Join(err, spec.checkUser()); err != nil {
		return nil, err
	}
	if d.asks(spec) {
		if err := d.checkAskNetwork(ctx); err != nil {
			return nil, err
		}
	}
	labels := d.labels(spec.RunID)
	p, err := start(ctx, spec, job{
		argv: append(client, d.runArgs(spec, spec.user())...),
		// The client's own come last and take precedence.
		env:   slices.Concat(without(spec.Env, "HOME", "PATH", "TMPDIR"), d.clientEnv()),
		relay: dockerRelay,
		cleanup: func(exit *Exit) {
			if exit.Signal == 0 && exit.Code < dockerFailed {
				return // as the container did, which is removed then
			}
			err := d.remove(labels)
			if said := dockerLine(exit.StderrTail); said != "" && exit.Code == dockerFailed { // there was no container
				err = withClass(errors.New(said), dockerClass(said))
			}
			exit.Err = err
		},
	})
	if err != nil {
		return nil, typed(err)
	}
	p.label = strings.Join(labels, " ")
	return p, nil
}

// End removes the containers with the run's labels. It uses the recorded ones: the
// data folder may have moved since.
func (d Docker) End(ctx context.Context, left Orphan) (found bool, err error) {
	found, err = endProcesses(left.Grace, left.group)
	labels := strings.Fields(left.Label)
	if len(labels) == 0 {
		labels = d.labels(left.RunID)
	}
	ids, listErr := d.list(ctx, labels)
	if err := errors.Join(err, listErr); err != nil || len(ids) == 0 {
		return found, err
	}
	return true, d.remove(labels)
}

func (d Docker) labels(runID int64) []string {
	return []string{"arizuko.instance=" + d.Instance, "arizuko.run=" + strconv.FormatInt(runID, 10)}
}

// runArgs are the client's arguments. They have no values of variables, which every
// user of the machine could read: the client takes those from its own
// environment.
func (d Docker) runArgs(spec Spec, u User) []string {
	args := []string{
		"run", "--interactive", "--rm", "--init", "--pull", "never", "--log-driver", "none",
		"--user", u.String(), "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--read-only", "--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777", "--network", d.networkOf(spec),
		"--mount", mount("type=bind", "source="+spec.Dir, "destination="+workspace), "--workdir", workspace,
	}
	if d.asks(spec) { // some versions of docker ask other name servers from outside: this address leads nowhere
		args = append(args, "--dns", "192.0.2.1")
	}
	for _, label := range d.labels(spec.RunID) {
		args = append(args, "--label", label)
	}
	if spec.Bundle != "" {
		args = append(args, "--mount", mount("type=bind", "source="+spec.Bundle, "destination="+BundlePath, "readonly"))
	}
	args = append(args, limitArgs(spec.Limits)...)
	args = append(args, "--env", "HOME="+workspace, "--env", "TMPDIR=/tmp")
	for _, entry := range without(spec.Env, "HOME", "PATH", "TMPDIR") {
		name, _, _ := strings.Cut(entry, "=")
		args = append(args, "--env", name)
	}
	if spec.Command != "" {
		return append(args, "--entrypoint", shell, "--", spec.Image, "-c", spec.Command)
	}
	return append(args, "--", spec.Image)
}

// asks reports whether an agent has no network but the one of the egress proxy.
func (d Docker) asks(spec Spec) bool { return cmp.Or(spec.Network, Network(d.Network)) == NetworkAsk }

func (d Docker) networkOf(spec Spec) string {
	if d.asks(spec) {
		return askNetwork
	}
	return cmp.Or(string(spec.Network), d.Network)
}

// checkAskNetwork refuses a network that leads outside. It is not made here: what listens at its gateway's address, as
// the proxy does, needs it before.
func (d Docker) checkAskNetwork(ctx context.Context) error {
	internal, err := d.call(ctx, "network", "inspect", "--format", "{{.Internal}}", askNetwork)
	switch {
	case ClassOf(err) == ClassMachine:
		return err
	case err != nil:
		return setupError("docker has no network %s, in which agents reach only the egress proxy and this machine: "+
			"make it with docker network create --internal %[1]s: %w", askNetwork, err)
	case strings.TrimSpace(internal) != "true":
		return setupError("docker's network %s leads outside: remove it, and make it again with --internal",
			askNetwork)
	}
	return nil
}

func limitArgs(l groupconfig.Limits) (args []string) {
	if l.Memory > 0 {
		bytes := strconv.FormatInt(int64(l.Memory), 10)
		args = append(args, "--memory", bytes, "--memory-swap", bytes) // no swap on top of it
	}
	if l.CPUs > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(l.CPUs, 'f', -1, 64))
	}
	if l.PIDs > 0 {
		args = append(args, "--pids-limit", strconv.Itoa(l.PIDs))
	}
	return args
}

// mount is a value of --mount, which is a line of CSV.
func mount(fields ...string) string {
	var line bytes.Buffer
	w := csv.NewWriter(&line)
	_ = w.Write(fields) // into memory
	w.Flush()
	return strings.TrimRight(line.String(), "\n")
}

// dockerLine is the last line of the client's own, "" if there is none. Advice may
// follow it.
func dockerLine(stderr string) (said string) {
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "docker: ") {
			said = strings.TrimSpace(line)
		}
	}
	return said
}

// remove removes containers and returns when they are gone. The engine may be
// removing one already.
func (d Docker) remove(labels []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), removeWait)
	defer cancel()
	var err error
	gone := within(removeWait, func() bool {
		var ids []string
		if ids, err = d.list(ctx, labels); err != nil || len(ids) == 0 {
			return true
		}
		_, _ = d.call(ctx, append([]string{"rm", "--force", "--volumes"}, ids...)...) // list finds those that are left
		return false
	})
	if err == nil && gone {
		return nil
	}
	return errors.Join(fmt.Errorf("a container may still be running: docker rm --force $(docker ps --all --quiet %s)",
		strings.Join(filters(labels), " ")), err)
}

func (d Docker) list(ctx context.Context, labels []string) (ids []string, err error) {
	out, err := d.call(ctx, append([]string{"ps", "--all", "--quiet", "--no-trunc"}, filters(labels)...)...)
	return strings.Fields(out), err
}

func filters(labels []string) (args []string) {
	for _, label := range labels {
		args = append(args, "--filter", "label="+label)
	}
	return args
}

// call runs the client and returns its output.
func (d Docker) call(ctx context.Context, args ...string) (string, error) {
	client, err := d.client()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, dockerWait)
	defer cancel()
	client = append(client, args...)
	cmd := exec.CommandContext(ctx, client[0], client[1:]...)
	cmd.Env = d.clientEnv()
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		said := strings.TrimSpace(stderr.String())
		failed := fmt.Errorf("docker %s: %w: %.500s", args[0], err, said)
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return "", &MachineError{fmt.Errorf("no answer for %s: %w", dockerWait, failed)}
		}
		return "", withClass(failed, dockerClass(said))
	}
	return stdout.String(), nil
}

func (d Docker) client() ([]string, error) {
	words := strings.Fields(d.Client)
	if len(words) == 0 {
		return nil, setupError("AGENT_DOCKER is empty")
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, setupError("docker's client is not installed: %w", err)
	}
	return append([]string{path}, words[1:]...), nil
}

// clientEnv has the variables by which the client finds the engine and its own settings.
func (d Docker) clientEnv() (env []string) {
	for _, entry := range d.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if name == "PATH" || name == "HOME" || name == "XDG_RUNTIME_DIR" || strings.HasPrefix(name, "DOCKER_") {
			env = append(env, entry)
		}
	}
	return env
}
