package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/config"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

const (
	startTimeout = 30 * time.Second
	stopTimeout  = 30 * time.Second
)

// build builds all programs, with build tags.
func build(tags string) (bin string, err error) {
	return harness.Build(tags, "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate",
		"arizuko/deploy/e2e/bench/agent", "arizuko/deploy/e2e/bench/floor", "arizuko/teled", "arizuko/discd",
		"arizuko/slakd")
}

// arizukoDaemons are the measured daemons, in starting order.
var arizukoDaemons = []string{"routd", "gated"}

// floorName is the program that is measured in their place.
const floorName = "floor"

// system is an instance that is measured. It is stopped at the end of the scenario.
type system struct {
	instance  *harness.Instance
	peers     []*harness.Instance // other machines, each with a gated, on the same database
	platforms []chatsim.Platform  // that its adapters connect to
	adapter   *fakeDaemon         // this program in the place of a daemon, nil for none
	proxy     *storetest.Proxy    // between the daemons and the server, nil for none
	isFloor   bool
}

// newArizuko starts routd and gated on a new database; see serve.
func (b *bench) newArizuko(ctx context.Context, chats, maxAgents int) (*system, error) {
	s, err := b.newSystem(ctx)
	if err != nil {
		return nil, err
	}
	return s, s.serve(ctx, chats, maxAgents)
}

// serve starts routd and gated with MAX_AGENTS, and makes a group and a route for each chat.
func (s *system) serve(ctx context.Context, chats, maxAgents int) error {
	// agents of root, which are other users, cannot pass b.dir
	agent, err := filepath.EvalSymlinks(s.instance.Program("agent"))
	if err != nil {
		return err
	}
	return s.serveWith(ctx, "exec "+agent, chats, maxAgents)
}

// serveWith is serve with the command of the agents.
func (s *system) serveWith(ctx context.Context, agent string, chats, maxAgents int) error {
	s.instance.Env = append(s.instance.Env, "AGENT_COMMAND="+agent, "MAX_AGENTS="+strconv.Itoa(maxAgents))
	if err := startDaemons(ctx, s.instance, arizukoDaemons...); err != nil {
		return err
	}
	jids := make([]string, chats)
	for i := range jids {
		jids[i] = chatJID(i)
	}
	return s.createRoutes(ctx, jids)
}

// startDaemons starts daemons, one after another, and waits until each is ready.
func startDaemons(ctx context.Context, i *harness.Instance, names ...string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, name := range names {
		if err := i.StartReady(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// newFloor starts the floor program on a new database.
func (b *bench) newFloor(ctx context.Context) (*system, error) {
	s, err := b.newSystem(ctx)
	if err != nil {
		return nil, err
	}
	s.isFloor = true
	if err := s.instance.Start(floorName); err != nil {
		return nil, err
	}
	return s, s.awaitFloor(ctx)
}

// awaitFloor waits until the floor, which has no HTTP, listens on gated's socket.
func (s *system) awaitFloor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	socket := filepath.Join(config.Base{Data: s.instance.Data}.RunDir(), "gated.sock")
	return harness.Await(ctx, socket, func() (bool, error) {
		if !s.instance.Running(floorName) {
			return false, fmt.Errorf("floor exited: %s\n%s", s.instance.Process(floorName).State(),
				s.instance.LogTail(floorName, 2000))
		}
		_, err := os.Stat(socket)
		return err == nil, nil
	})
}

// newSystem makes a data folder with a migrated database, without daemons. This program stands in for teled.
func (b *bench) newSystem(ctx context.Context) (*system, error) { return b.newSystemOn(ctx, "") }

// newSystemOn is newSystem with the URL of an empty database, "" for a file in the data folder.
func (b *bench) newSystemOn(ctx context.Context, database string) (*system, error) {
	return b.newSystemAs(ctx, msg.DaemonOf(chatJID(0)), database)
}

// newSystemAs is newSystemOn with the daemon that this program stands in for, "" for none, and with platforms.
func (b *bench) newSystemAs(ctx context.Context, daemon, database string, platforms ...chatsim.Platform) (*system,
	error) {
	i, err := b.newInstance()
	if err != nil {
		return nil, err
	}
	s := &system{instance: i, platforms: platforms}
	b.systems = append(b.systems, s)
	if database != "" {
		i.UseDatabase(database)
		i.Env = append(i.Env, "ARIZUKO_HOST=machine1")
	}
	for _, p := range platforms {
		env, err := p.Serve(i.Host)
		if err != nil {
			return nil, err
		}
		i.Env = append(i.Env, env...)
	}
	if err = i.Migrate(); err == nil && daemon != "" {
		s.adapter, err = openAs(ctx, daemon, i)
	}
	return s, err
}

// newInstance makes an empty data folder, with the settings of all systems.
func (b *bench) newInstance() (*harness.Instance, error) {
	i, err := harness.NewIn(b.dir, b.bin)
	if err != nil {
		return nil, err
	}
	i.Env = append(i.Env, "LOG_LEVEL=warn", "AGENT_IDLE=1h")
	return i, nil
}

// createRoutes creates a group and a route for each chat.
func (s *system) createRoutes(ctx context.Context, chats []string) error {
	routd, err := s.instance.Client("routd")
	if err != nil {
		return err
	}
	for i, jid := range chats {
		if err := routd.Do(ctx, http.MethodPost, "/v1/groups",
			msg.Group{Folder: groupFolder(i), Config: json.RawMessage(harness.NoRate)}, nil); err != nil {
			return err
		}
		route := msg.Route{Match: "chat_jid=" + jid, Target: groupFolder(i)}
		if err := routd.Do(ctx, http.MethodPost, "/v1/routes", route, nil); err != nil {
			return err
		}
	}
	return nil
}

// chatJID is the JID of the nth chat, a DM.
func chatJID(n int) string { return fmt.Sprintf("telegram:%d", n+1) }

// groupFolder is the group that the nth chat is routed to.
func groupFolder(n int) string { return fmt.Sprintf("group-%d", n) }

// stop stops the daemons and deletes the data.
func (s *system) stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	instances := append(s.peers, s.instance)
	for _, i := range instances {
		errs = append(errs, i.StopAll(ctx))
	}
	if s.adapter != nil {
		errs = append(errs, s.adapter.close())
	}
	for _, p := range s.platforms {
		errs = append(errs, p.Close())
	}
	for _, i := range instances {
		errs = append(errs, i.Close())
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	return errors.Join(errs...)
}

// cpuTimes is the processor time that each daemon has used, without its children.
type cpuTimes map[string]time.Duration

// cpu returns the processor time so far.
func (s *system) cpu() (cpuTimes, error) {
	used := cpuTimes{}
	for _, name := range s.instance.Started() {
		var at unix.Timespec
		if err := unix.ClockGettime(processClock(s.instance.Process(name).PID()), &at); err != nil {
			return nil, fmt.Errorf("processor time of %s: %w", name, err)
		}
		used[name] = time.Duration(at.Nano())
	}
	return used, nil
}

// processClock is the id of the clock that counts a process's processor time in nanoseconds: see
// clock_getcpuclockid(3).
func processClock(pid int) int32 {
	const scheduled = 2
	return int32(^pid<<3 | scheduled)
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
