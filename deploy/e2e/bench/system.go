package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/config"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

const (
	startMost = 30 * time.Second
	stopMost  = 30 * time.Second
)

// build makes all programs.
func build() (bin string, err error) {
	return harness.Build("", "arizuko/gated", "arizuko/routd", "arizuko/migrations/cmd/migrate",
		"arizuko/deploy/e2e/bench/agent", "arizuko/deploy/e2e/bench/floor", "arizuko/teled", "arizuko/discd", "arizuko/slakd")
}

// system is a set of daemons on a database of their own, and the adapter
// through which messages get into it and answers out.
type system struct {
	*adapter
	*harness.Instance
	daemons []string // in the order in which they were started
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
	s.Env = append(s.Env, "LOG_LEVEL=warn", "AGENT_IDLE=1h",
		"AGENT_COMMAND=exec "+s.Program("agent"), "MAX_AGENTS="+strconv.Itoa(maxAgents))
	for _, name := range []string{"routd", "gated"} {
		if err := s.start(ctx, name, s.AwaitReady); err != nil {
			return err
		}
	}
	return s.connect(ctx, chats)
}

// start starts a daemon and waits until it is ready.
func (s *system) start(ctx context.Context, name string, ready func(context.Context, string) error) error {
	if err := s.Start(name); err != nil {
		return err
	}
	s.daemons = append(s.daemons, name)
	ctx, cancel := context.WithTimeout(ctx, startMost)
	defer cancel()
	if err := ready(ctx, name); err != nil {
		return errors.Join(err, s.complaints())
	}
	return nil
}

// floorProgram starts the floor on a new database.
func (b *bench) floorProgram(ctx context.Context) (*system, error) {
	s, err := b.database(ctx)
	if err != nil {
		return nil, err
	}
	s.floor = true
	return s, s.start(ctx, "floor", s.awaitSocket)
}

// awaitSocket returns when a daemon that has no HTTP listens in gated's place.
func (s *system) awaitSocket(ctx context.Context, name string) error {
	socket := filepath.Join(s.base().RunDir(), "gated.sock")
	return harness.Await(ctx, socket, func() (bool, error) {
		if !s.Running(name) {
			return false, fmt.Errorf("%s ended: %s", name, s.Process(name).State())
		}
		_, err := os.Stat(socket)
		return err == nil, nil
	})
}

// database makes a data folder with a migrated database.
func (b *bench) database(ctx context.Context) (*system, error) {
	i, err := harness.NewIn(b.dir, b.bin)
	if err != nil {
		return nil, err
	}
	s := &system{Instance: i}
	if err := i.Migrate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(s.base().RunDir(), 0o700); err != nil {
		return nil, err
	}
	if s.adapter, err = openAdapter(ctx, s.base()); err != nil {
		return nil, err
	}
	b.systems = append(b.systems, s)
	return s, nil
}

// base knows what lies where in the data folder.
func (s *system) base() config.Base { return config.Base{Data: s.Data} }

// connect registers a group and a route for each chat.
func (s *system) connect(ctx context.Context, chats int) error {
	secret, err := s.Secret()
	if err != nil {
		return err
	}
	client := httpx.NewClient(s.URL("routd"), secret)
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
	ctx, cancel := context.WithTimeout(context.Background(), stopMost)
	defer cancel()
	var errs []error
	for _, name := range slices.Backward(s.daemons) {
		errs = append(errs, s.Stop(ctx, name))
	}
	return errors.Join(append(errs, s.close(), s.Close())...)
}

// complaints is what the daemons have written to their logs, as an error.
func (s *system) complaints() error {
	var errs []error
	for _, name := range s.daemons {
		if text, _ := s.Log(name); text != "" {
			errs = append(errs, fmt.Errorf("%s says:\n%s", name, text[max(0, len(text)-2000):]))
		}
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
