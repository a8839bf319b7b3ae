package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	_ "github.com/mattn/go-sqlite3" // writes the backlog, as any client may
	"golang.org/x/sync/errgroup"

	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store/storetest"
)

const (
	// readyBudget, in seconds, and stopBudget, in ms, are promises to users and operators on any machine.
	readyBudget = 2
	stopBudget  = 200
	// backlogChat is the chat whose turns wait: the agent of its group never answers.
	backlogChat = 1
)

// backlog measures the cost of many queued turns: the start of gated, a message of another chat, and /stop.
func (b *bench) backlog(ctx context.Context) ([]figure, error) {
	turns := b.pick(100_000, 300)
	systems := make([]*system, 2)
	ready := make([]time.Duration, 2)
	for i, queued := range []int{0, turns} {
		s, err := b.newSystem(ctx)
		if err != nil {
			return nil, err
		}
		systems[i] = s
		if ready[i], err = s.serveBacklog(ctx, queued); err != nil {
			return nil, err
		}
	}
	got, cpu, err := askWithCPU(ctx, b.pick(1000, 10), systems)
	if err != nil {
		return nil, err
	}
	longest, took, err := systems[1].measureStop(ctx)
	if err != nil {
		return nil, err
	}

	name := fmt.Sprintf("%d queued turns: ", turns)
	return []figure{
		{name: name + "start of gated → ready", note: "floor: without them", unit: "s", budget: readyBudget,
			measured: ready[1].Seconds(), floor: ready[0].Seconds()},
		{name: name + "message of another chat, inbound commit → outbound row, p50", note: "floor: without them",
			unit: "ms", ratio: 1.3,
			measured: percentile(50, got[1].toReply), floor: percentile(50, got[0].toReply)},
		{name: name + "CPU of the daemons per message of another chat", note: "floor: without them", unit: "ms",
			ratio:    1.3,
			measured: milliseconds(cpu[1]) / float64(len(got[1].all)),
			floor:    milliseconds(cpu[0]) / float64(len(got[0].all))},
		{name: name + "/stop of all, longest commit of another process meanwhile", unit: "ms", budget: stopBudget,
			measured: milliseconds(longest)},
		{name: name + "/stop of all, until the last is stopped", unit: "s", measured: took.Seconds()},
	}, nil
}

// serveBacklog starts the daemons, and gated once more with a number of queued turns. It returns how long that
// start took.
func (s *system) serveBacklog(ctx context.Context, turns int) (ready time.Duration, err error) {
	hangs := fmt.Sprintf(`case "$PWD" in */%s) exec sleep 1000;; esac; exec `, groupFolder(backlogChat)) +
		s.instance.Program("agent")
	if err := s.serveWith(ctx, hangs, 2, 5); err != nil {
		return 0, err
	}
	if err := s.instance.Kill("gated"); err != nil {
		return 0, err
	}
	if err := s.queueTurns(ctx, turns); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := startDaemons(ctx, s.instance, "gated"); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// openSQL opens the database as any client may.
func (s *system) openSQL() (*sql.DB, error) {
	return sql.Open("sqlite3", "file:"+s.instance.Database()+"?_busy_timeout=20000&_txlock=immediate")
}

// queueTurns stores queued turns of one chat, each with one message, as if each were full.
func (s *system) queueTurns(ctx context.Context, n int) (err error) {
	db, err := s.openSQL()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit

	var message, turn int64 // the last ids
	err = tx.QueryRowContext(ctx,
		`SELECT (SELECT ifnull(max(id), 0) FROM messages), (SELECT ifnull(max(id), 0) FROM turns)`).Scan(&message,
		&turn)
	if err != nil {
		return err
	}
	const numbers = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) `
	now := time.Now().UnixMilli()
	for _, insert := range []string{
		numbers + `INSERT INTO messages (id, chat_jid, platform_id, direction, sender, sender_name, content, timestamp, received_at, source,
			routed_to, disposition, reason, decided_at, decision_seq, turn_id)
			SELECT ?2 + i, ?4, 'queued-' || i, 'in', 'telegram:7', 'Alice', 'a message that waits', ?6, ?6, 'teled',
			?5, 'routed', 'route', ?6, i, ?3 + i FROM n`,
		numbers + `INSERT INTO turns (id, kind, folder, chat_jid, topic, reply_to, trigger_message_id, surface, ceiling, state, row_count, created_at)
			SELECT ?3 + i, 'conversation', ?5, ?4, '', 'queued-' || i, ?2 + i, 'telegram-dm', 4000, 'queued', 100, ?6 FROM n`,
	} {
		if n == 0 {
			break
		}
		if _, err := tx.ExecContext(ctx, insert, n, message, turn, chatJID(backlogChat), groupFolder(backlogChat),
			now); err != nil {
			return fmt.Errorf("queue turns: %w", err)
		}
	}
	return tx.Commit()
}

// measureStop stops the backlog with /stop, while this process commits one row after the other. It returns
// the longest of these commits, and how long it took until no turn was open.
func (s *system) measureStop(ctx context.Context) (longest, took time.Duration, err error) {
	db, err := s.openSQL()
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	stop := s.adapter.message(backlogChat)
	stop.Content = "/stop"
	began := time.Now()
	if _, _, err := storetest.Put(ctx, s.adapter.store, stop); err != nil {
		return 0, 0, err
	}
	stopped, cancel := context.WithCancel(ctx)
	group, waiting := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		longest, err = s.commitUntil(ctx, stopped)
		return err
	})
	group.Go(func() error {
		defer cancel()
		ctx, cancel := context.WithTimeout(waiting, 2*answerTimeout)
		defer cancel()
		return harness.Await(ctx, "all turns to be stopped", func() (done bool, err error) {
			err = db.QueryRowContext(ctx,
				`SELECT NOT EXISTS (SELECT 1 FROM turns WHERE chat_jid = ? AND state IN ('queued', 'running'))`,
				chatJID(backlogChat)).Scan(&done)
			took = time.Since(began)
			return done, err
		})
	})
	err = group.Wait()
	return longest, took, err
}

// commitUntil commits one row after the other until stopped is done, and returns the longest commit.
func (s *system) commitUntil(ctx, stopped context.Context) (longest time.Duration, err error) {
	for i := 0; stopped.Err() == nil; i++ {
		m := &msg.Message{ChatJID: "bench:1", PlatformID: fmt.Sprint(i), Direction: msg.Out, OutState: msg.OutSent,
			Content: "a commit"}
		began := time.Now()
		if _, _, err := storetest.Put(ctx, s.adapter.store, m); err != nil {
			return longest, err
		}
		longest = max(longest, time.Since(began))
		if err := wait(ctx, minPause); err != nil {
			return longest, err
		}
	}
	return longest, nil
}
