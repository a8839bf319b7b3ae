package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

const (
	startMost = 30 * time.Second
	stopMost  = 30 * time.Second
)

// build makes all programs.
func (b *bench) build(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", b.bin(""),
		"arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate",
		"arizuko/deploy/bench/agent", "arizuko/deploy/bench/floor")
	if err := os.MkdirAll(b.bin(""), 0o700); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// system is a set of daemons on a database of their own, and the adapter
// through which messages get into it and answers out.
type system struct {
	*adapter
	data    config.Base
	daemons []*process
	floor   bool
}

// arizuko starts routd and gated on a new database; see serve.
func (b *bench) arizuko(ctx context.Context, chats, maxAgents int) (*system, error) {
	s, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	return s, b.serve(ctx, s, chats, maxAgents)
}

// serve starts routd and gated, with as many agents as may work at once, and
// gives each of so many chats a group and a route.
func (b *bench) serve(ctx context.Context, s *system, chats, maxAgents int) error {
	addr, err := freeAddrs(2)
	if err != nil {
		return err
	}
	env := []string{"ROUTD_ADDR=" + addr[0], "GATED_ADDR=" + addr[1], "LOG_LEVEL=warn", "AGENT_IDLE=1h",
		"AGENT_COMMAND=exec " + b.bin("agent"), "MAX_AGENTS=" + strconv.Itoa(maxAgents)}
	for i, name := range []string{"routd", "gated"} {
		if err := s.start(ctx, env, b.bin(name)); err != nil {
			return err
		}
		if err := awaitReady(ctx, "http://"+addr[i]); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", name, err), s.complaints())
		}
	}
	return s.connect(ctx, "http://"+addr[0], chats)
}

// floorProgram starts the floor on a new database.
func (b *bench) floorProgram(ctx context.Context) (*system, error) {
	s, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	s.floor = true
	if err := s.start(ctx, nil, b.bin("floor"), "-data", s.data.Data, "-agent", b.bin("agent")); err != nil {
		return nil, err
	}
	socket := filepath.Join(s.data.RunDir(), "gated.sock")
	err = await(ctx, func() error { _, err := os.Stat(socket); return err })
	if err != nil {
		return nil, errors.Join(err, s.complaints())
	}
	return s, nil
}

// database makes a data folder with a migrated database.
func (b *bench) database(ctx context.Context) (*system, error) {
	b.made++
	s := &system{data: config.Base{Data: filepath.Join(b.dir, strconv.Itoa(b.made))}}
	cmd := exec.CommandContext(ctx, b.bin("migrate"), "up")
	cmd.Env = s.environ(nil)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("migrate up: %w\n%s", err, out)
	}
	if err := os.MkdirAll(s.data.RunDir(), 0o700); err != nil {
		return nil, err
	}
	var err error
	if s.adapter, err = openAdapter(ctx, s.data); err != nil {
		return nil, err
	}
	b.systems = append(b.systems, s)
	return s, nil
}

// environ keeps the caller's own settings away from the daemons.
func (s *system) environ(extra []string) []string {
	return append([]string{"ARIZUKO_DATA=" + s.data.Data, "PATH=" + os.Getenv("PATH"), "HOME=" + s.data.Data}, extra...)
}

// connect registers a group and a route for each chat.
func (s *system) connect(ctx context.Context, routd string, chats int) error {
	secret, err := s.data.Secret()
	if err != nil {
		return err
	}
	client := httpx.NewClient(routd, secret)
	for i := range chats {
		if err := client.Do(ctx, http.MethodPost, "/v1/groups", msg.Group{Folder: groupFolder(i)}, nil); err != nil {
			return err
		}
		route := msg.Route{Match: "chat_jid=" + chatJID(i), Target: groupFolder(i)}
		if err := client.Do(ctx, http.MethodPost, "/v1/routes", route, nil); err != nil {
			return err
		}
	}
	return nil
}

// chatJID is the address of the nth chat, a DM.
func chatJID(n int) string { return fmt.Sprintf("telegram:%d", n+1) }

// groupFolder is the group that the nth chat is routed to.
func groupFolder(n int) string { return fmt.Sprintf("group-%d", n) }

// stop ends the daemons, last started first, and forgets the data.
func (s *system) stop() error {
	var errs []error
	for _, p := range slices.Backward(s.daemons) {
		errs = append(errs, p.stop())
	}
	return errors.Join(append(errs, s.close(), os.RemoveAll(s.data.Data))...)
}

// complaints is what the daemons have written to their logs, as an error.
func (s *system) complaints() error {
	var errs []error
	for _, p := range s.daemons {
		if text, _ := os.ReadFile(p.log); len(text) > 0 {
			errs = append(errs, fmt.Errorf("%s says:\n%s", p.name, text[max(0, len(text)-2000):]))
		}
	}
	return errors.Join(errs...)
}

// process is a running daemon.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
}

func (s *system) start(ctx context.Context, env []string, program string, args ...string) error {
	p := &process{name: filepath.Base(program), cmd: exec.CommandContext(ctx, program, args...)}
	p.log = filepath.Join(s.data.Data, p.name+".err")
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd.Env, p.cmd.Stderr = s.environ(env), log
	p.cmd.Cancel = func() error { return p.cmd.Process.Signal(syscall.SIGTERM) }
	p.cmd.WaitDelay = stopMost
	if err := p.cmd.Start(); err != nil {
		return err
	}
	s.daemons = append(s.daemons, p)
	return nil
}

func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may be gone already
	timer := time.AfterFunc(stopMost, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	return nil
}

// freeAddrs are loopback addresses that nobody listens on.
func freeAddrs(n int) (addrs []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

func awaitReady(ctx context.Context, base string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	return await(ctx, func() error {
		res, err := client.Get(base + "/readyz")
		if err != nil {
			return err
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("not ready: %s", strings.ToLower(res.Status))
		}
		return nil
	})
}

// await tries until there is no error, and returns the last one if that takes
// too long.
func await(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, startMost)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if wait(ctx, 20*time.Millisecond) != nil {
			return err
		}
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
