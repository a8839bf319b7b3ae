package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"arizuko/gated/gatedtest"

	"golang.org/x/sync/errgroup"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// storedChats is the number of chats that stored messages are spread over. All belong to the group of
	// the measured chat.
	storedChats = 1000
	// storedSpan is the age of the oldest stored message.
	storedSpan = 90 * 24 * time.Hour
)

// stored measures the cost of a message with many stored messages against that with few: spread over
// chats, and within the measured chat. All four systems are asked alternately.
func (b *bench) stored(ctx context.Context) (figures []figure, err error) {
	few, many := b.pick(10_000, 200), b.pick(1_000_000, 2000)
	systems, err := b.startStored(ctx, []storedHistory{{few, storedChats}, {many, storedChats}, {few, 1}, {many, 1}})
	if err != nil {
		return nil, err
	}
	samples, cpu, err := askWithCPU(ctx, b.pick(1000, 10), systems)
	if err != nil {
		return nil, err
	}

	for i, where := range []string{"spread over chats", "within one chat"} {
		base, large := 2*i, 2*i+1
		name := fmt.Sprintf("%d stored messages ÷ %d, %s: ", many, few, where)
		before, after := percentile(50, samples[base].toReply), percentile(50, samples[large].toReply)
		figures = append(figures,
			figure{name: name + "inbound commit → outbound row, p50", unit: "×", budget: 1.3, measured: after / before,
				note: fmt.Sprintf("%.3g against %.3g ms", after, before)},
			figure{name: name + "CPU of the daemons", unit: "×", budget: 1.3,
				measured: cpu[large].Seconds() / cpu[base].Seconds()})
	}
	return figures, nil
}

// startStored starts a system with each history. The systems fill their databases concurrently.
func (b *bench) startStored(ctx context.Context, histories []storedHistory) ([]*system, error) {
	systems := make([]*system, len(histories))
	group, fillCtx := errgroup.WithContext(ctx)
	for i, h := range histories {
		s, err := b.newSystem(ctx)
		if err != nil {
			return nil, errors.Join(err, group.Wait())
		}
		systems[i] = s
		group.Go(func() error {
			if err := h.store(fillCtx, s.adapter.store); err != nil {
				return err
			}
			return s.serve(ctx, 1, 5)
		})
	}
	return systems, group.Wait()
}

// askWithCPU asks systems alternately, and returns the CPU time of each system's daemons too.
func askWithCPU(ctx context.Context, n int, systems []*system) (got []samples, cpu []time.Duration, err error) {
	cpu = make([]time.Duration, len(systems))
	for i, s := range systems {
		used, err := s.totalCPU()
		if err != nil {
			return nil, nil, err
		}
		cpu[i] = -used
	}
	if got, err = askAlternately(ctx, n, systems...); err != nil {
		return nil, nil, err
	}
	for i, s := range systems {
		used, err := s.totalCPU()
		if err != nil {
			return nil, nil, err
		}
		cpu[i] += used
	}
	return got, cpu, nil
}

// totalCPU returns the CPU time of all daemons so far.
func (s *system) totalCPU() (total time.Duration, err error) {
	used, err := s.cpu()
	for _, d := range used {
		total += d
	}
	return total, err
}

// storedHistory is a number of stored messages, answers included, spread over chats.
type storedHistory struct{ messages, chats int }

// messagesPerTurn is the number of inbound messages of a stored turn.
const messagesPerTurn = 3

// store writes the history with the store methods that gated uses.
func (h storedHistory) store(ctx context.Context, st *store.Store) error {
	const perCommit = 1000 // turns
	turns := h.messages / (messagesPerTurn + 1)
	step := storedSpan.Milliseconds() / int64(turns+1)
	at := time.Now().Add(-storedSpan).UnixMilli()
	for done := 0; done < turns; done += perCommit {
		err := st.Write(ctx, func(tx *store.Tx) error {
			for i := done; i < min(done+perCommit, turns); i++ {
				if err := putStoredTurn(tx, i, chatJID(i%h.chats), at+int64(i)*step); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// putStoredTurn stores the nth turn as done, with its messages and its answer.
func putStoredTurn(tx *store.Tx, n int, jid string, at int64) error {
	rows := make([]*msg.Message, messagesPerTurn)
	for i := range rows {
		rows[i] = &msg.Message{
			ChatJID: jid, PlatformID: fmt.Sprintf("old-%d-%d", n, i), Direction: msg.In, Sender: "telegram:7",
			SenderName: "Alice",
			Content:    "something that was written some time ago", Timestamp: at, ReceivedAt: at, Source: "teled",
		}
		if _, _, err := tx.PutMessage(rows[i]); err != nil {
			return err
		}
	}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: groupFolder(0), ChatJID: jid, Surface: "telegram-dm",
		Ceiling: 4000,
		ReplyTo: rows[messagesPerTurn-1].PlatformID, TriggerMessageID: rows[messagesPerTurn-1].ID, CreatedAt: at}
	if _, err := gatedtest.PutTurn(tx, turn, 0); err != nil {
		return err
	}
	for _, m := range rows {
		d := store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID}
		if err := tx.Decide(m.ID, d, at); err != nil {
			return err
		}
	}
	_, _, err := tx.PutMessage(&msg.Message{
		ChatJID: jid, PlatformID: fmt.Sprintf("old-%d", n), Direction: msg.Out, IsBot: true,
		Sender:  "agent:" + turn.Folder,
		Content: "and what was answered to it", ReplyToID: turn.ReplyTo, Timestamp: at, ReceivedAt: at,
		Source: msg.SourceAgent, TurnID: turn.ID, OutState: msg.OutSent,
	})
	if err != nil {
		return err
	}
	return gatedtest.FinishTurn(tx, turn, msg.TurnDone, msg.ReasonAnswered, "", at)
}
