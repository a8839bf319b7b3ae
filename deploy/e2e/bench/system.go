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

// system is an instance with the fake adapter that feeds it.
type system struct {
	adapter  *fakeAdapter
	instance *harness.Instance
	peers    []*harness.Instance // other machines, each with a gated, on the same database
	proxy    *storetest.Proxy    // between the daemons and the server, nil for none
	isFloor  bool
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
	s.instance.Env = append(s.instance.Env, "LOG_LEVEL=warn", "AGENT_IDLE=1h",
		"AGENT_COMMAND="+agent, "MAX_AGENTS="+strconv.Itoa(maxAgents))
	for _, name := range arizukoDaemons {
		if err := s.startDaemon(ctx, name); err != nil {
			return err
		}
	}
	return s.createRoutes(ctx, chats)
}

// startDaemon starts a daemon and waits until it is ready.
func (s *system) startDaemon(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.instance.StartReady(ctx, name)
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
	socket := filepath.Join(s.paths().RunDir(), "gated.sock")
	return harness.Await(ctx, socket, func() (bool, error) {
		if !s.instance.Running(floorName) {
			return false, fmt.Errorf("floor exited: %s\n%s", s.instance.Process(floorName).State(),
				s.instance.LogTail(floorName, 2000))
		}
		_, err := os.Stat(socket)
		return err == nil, nil
	})
}

// newSystem makes a data folder with a migrated database, without daemons.
func (b *bench) newSystem(ctx context.Context) (*system, error) { return b.newSystemOn(ctx, "") }

// newSystemOn is newSystem with the URL of an empty database, "" for a file in the data folder.
func (b *bench) newSystemOn(ctx context.Context, database string) (*system, error) {
	i, err := harness.NewIn(b.dir, b.bin)
	if err != nil {
		return nil, err
	}
	s := &system{instance: i}
	if database != "" {
		i.UseDatabase(database)
		i.Env = append(i.Env, "ARIZUKO_HOST=machine1")
	}
	if err := i.Migrate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.paths().RunDir(), 0o700); err != nil {
		return nil, err
	}
	if s.adapter, err = openAdapter(ctx, i.Database(), s.paths()); err != nil {
		return nil, err
	}
	b.systems = append(b.systems, s)
	return s, nil
}

// paths are the paths in the data folder.
func (s *system) paths() config.Base { return config.Base{Data: s.instance.Data} }

// createRoutes creates a group and a route for each chat.
func (s *system) createRoutes(ctx context.Context, chats int) error {
	routd, err := s.instance.Client("routd")
	if err != nil {
		return err
	}
	for i := range chats {
		if err := routd.Do(ctx, http.MethodPost, "/v1/groups",
			msg.Group{Folder: groupFolder(i), Config: json.RawMessage(harness.NoRate)}, nil); err != nil {
			return err
		}
		route := msg.Route{Match: "chat_jid=" + chatJID(i), Target: groupFolder(i)}
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
	for _, i := range append(s.peers, s.instance) {
		errs = append(errs, i.StopAll(ctx))
	}
	errs = append(errs, s.adapter.close())
	for _, i := range append(s.peers, s.instance) {
		errs = append(errs, i.Close())
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	return errors.Join(errs...)
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
