// Floor shows the cost of the message path without any logic: when poked, it reads the new rows of a chat,
// writes them as one line to that chat's agent, reads the answering frame and commits one outbound row. It
// stands in for gated, with the same database, options, poke sockets and protocol. The difference to gated
// is the cost of gate, layers, routing, queue and turns.
//
// It uses the migrated data folder in the current folder, and the agent beside its own executable.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"arizuko/gated/gatedtest"

	"golang.org/x/sync/errgroup"

	"arizuko/pkg/agentproto"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/wake"
)

const (
	// pageRows is the number of rows per query, turnRows the number per line to an agent: as in gated.
	pageRows = 2000
	turnRows = 100
	// checkpointInterval is the time between checkpoints of the write-ahead log, as in gated.
	checkpointInterval = time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	self, err := os.Executable()
	if err == nil {
		err = run(ctx, ".", filepath.Join(filepath.Dir(self), "agent"))
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, "floor:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, data, agent string) error {
	poker := wake.NewPoker(filepath.Join(data, "run"), func(daemon string, err error) {
		fmt.Fprintf(os.Stderr, "floor: poke %s: %v\n", daemon, err)
	})
	defer poker.Close()
	db := filepath.Join(data, "arizuko.db")
	st, err := store.Open(ctx, store.Options{Path: db, Poke: poker.Poke})
	if err != nil {
		return err
	}
	defer st.Close()
	checkpointer, err := store.OpenCheckpointer(db)
	if err != nil {
		return err
	}
	defer checkpointer.Close()
	cursor, err := st.LastMessageID(ctx)
	if err != nil {
		return err
	}
	// The socket is opened last, since it means that the floor is ready.
	poked, err := wake.Listen(filepath.Join(data, "run"), "gated")
	if err != nil {
		return err
	}
	defer poked.Close()
	group, ctx := errgroup.WithContext(ctx)
	f := &floor{st: st, agent: agent, group: group, began: cursor, chats: map[string]chan struct{}{}}
	group.Go(func() error { return f.watch(ctx, poked.C()) })
	group.Go(func() error { return checkpoint(ctx, checkpointer) })
	return group.Wait()
}

func checkpoint(ctx context.Context, c *store.Checkpointer) error {
	ticker := time.NewTicker(checkpointInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		if _, err := c.Run(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
}

type floor struct {
	st    *store.Store
	agent string
	group *errgroup.Group
	began int64                    // id of the last row before the start
	chats map[string]chan struct{} // wakes the goroutine of a chat
}

// watch wakes the chats that have new rows.
func (f *floor) watch(ctx context.Context, poked <-chan struct{}) error {
	floor := &store.Floor{At: f.began}
	for {
		read, err := gatedtest.NewMessages(ctx, f.st.Reader, floor, pageRows)
		if err != nil {
			return err
		}
		for _, jid := range read.Chats {
			f.wake(ctx, jid)
		}
		if read.Last != 0 {
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poked:
		}
	}
}

func (f *floor) wake(ctx context.Context, jid string) {
	c, ok := f.chats[jid]
	if !ok {
		c = make(chan struct{}, 1)
		f.chats[jid] = c
		f.group.Go(func() error { return f.serve(ctx, jid, c) })
	}
	select {
	case c <- struct{}{}:
	default:
	}
}

// serve runs a chat's agent and answers the chat's rows.
func (f *floor) serve(ctx context.Context, jid string, poked <-chan struct{}) error {
	cmd := exec.CommandContext(ctx, f.agent)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { _ = stdin.Close(); _ = cmd.Wait() }()
	frames := agentproto.NewScanner(stdout, io.Discard)
	for after := f.began; ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-poked:
		}
		if after, err = f.answer(ctx, jid, after, stdin, frames); err != nil {
			return err
		}
	}
}

// answer sends the chat's rows after a row to the agent until there are none left, and returns the last
// row.
func (f *floor) answer(ctx context.Context, jid string, after int64, stdin io.Writer,
	frames *agentproto.Scanner) (int64, error) {
	for {
		rows, err := gatedtest.Undecided(ctx, f.st.Reader, jid, after, turnRows)
		if err != nil || len(rows) == 0 {
			return after, err
		}
		after = rows[len(rows)-1].ID
		line, err := agentproto.Encode(agentproto.Message{TurnID: strconv.FormatInt(after, 10), Prompt: prompt(rows)})
		if err != nil {
			return after, err
		}
		if _, err := stdin.Write(line); err != nil {
			return after, err
		}
		frame, err := frames.NextFrame()
		if err != nil {
			return after, fmt.Errorf("agent of %s: %w", jid, err)
		}
		now := time.Now().UnixMilli()
		_, _, err = storetest.Put(ctx, f.st, &msg.Message{ChatJID: jid, Direction: msg.Out, Content: frame.Result,
			Timestamp: now, ReceivedAt: now, OutState: msg.OutQueued})
		if err != nil {
			return after, err
		}
	}
}

func prompt(rows []*msg.Message) string {
	var b strings.Builder
	for _, m := range rows {
		fmt.Fprintf(&b, "<message id=\"%d\">%s</message>\n", m.ID, m.Content)
	}
	return b.String()
}
