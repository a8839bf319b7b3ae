package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

const (
	// storedChats is over how many chats stored messages are spread, all of
	// one group: that of the chat which is measured.
	storedChats = 1000
	// storedSpan is how far back they go.
	storedSpan = 90 * 24 * time.Hour
)

// stored measures what a message costs where many are stored already, against
// where few are: spread over chats, and within the chat itself. All four
// systems are asked by turns.
func (b *bench) stored(ctx context.Context) ([]line, error) {
	few, many := b.pick(10_000, 200), b.pick(1_000_000, 2000)
	systems := make([]*system, 4)
	starting, startCtx := errgroup.WithContext(ctx)
	for i, h := range []history{{few, storedChats}, {many, storedChats}, {few, 1}, {many, 1}} {
		s, err := b.database(ctx)
		if err != nil {
			return nil, err
		}
		systems[i] = s
		starting.Go(func() error {
			if err := h.store(startCtx, s.st); err != nil {
				return err
			}
			return b.serve(ctx, s, 1, 5)
		})
	}
	if err := starting.Wait(); err != nil {
		return nil, err
	}
	before := make([]time.Duration, len(systems))
	var err error
	for i, s := range systems {
		if before[i], err = s.totalCPU(); err != nil {
			return nil, err
		}
	}
	got, err := askByTurns(ctx, b.pick(1000, 10), systems...)
	if err != nil {
		return nil, err
	}
	used := make([]float64, len(systems))
	for i, s := range systems {
		after, err := s.totalCPU()
		if err != nil {
			return nil, err
		}
		used[i] = (after - before[i]).Seconds()
	}
	var lines []line
	for i, where := range []string{"spread over chats", "within one chat"} {
		base, large := 2*i, 2*i+1
		what := fmt.Sprintf("cost at %d stored messages against %d, %s: ", many, few, where)
		latency := [2]float64{percentile(50, got[base].toReply), percentile(50, got[large].toReply)}
		lines = append(lines,
			line{what: what + "outbound row, p50", unit: "×", budget: 1.3, measured: latency[1] / latency[0],
				note: fmt.Sprintf("%.3g against %.3g ms", latency[1], latency[0])},
			line{what: what + "CPU of the daemons", unit: "×", budget: 1.3, measured: used[large] / max(used[base], clockTick.Seconds())})
	}
	return lines, nil
}

// totalCPU is what all daemons together have used so far.
func (s *system) totalCPU() (total time.Duration, err error) {
	used, err := s.cpu()
	for _, d := range used {
		total += d
	}
	return total, err
}

// history is a past: messages, answers among them, spread over chats.
type history struct{ messages, chats int }

// exchange is what people write before they are answered once.
const exchange = 3

// store writes the past as gated would have, through the same verbs.
func (h history) store(ctx context.Context, st *store.Store) error {
	const perCommit = 1000 // exchanges
	exchanges := h.messages / (exchange + 1)
	step := storedSpan.Milliseconds() / int64(exchanges+1)
	at := time.Now().Add(-storedSpan).UnixMilli()
	for done := 0; done < exchanges; done += perCommit {
		err := st.Write(ctx, func(tx *store.Tx) error {
			for i := done; i < min(done+perCommit, exchanges); i++ {
				if err := putExchange(tx, i, chatJID(i%h.chats), at+int64(i)*step); err != nil {
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

// putExchange stores the nth turn of all, done, with its messages and its
// answer.
func putExchange(tx *store.Tx, n int, jid string, at int64) error {
	rows := make([]*msg.Message, exchange)
	for i := range rows {
		rows[i] = &msg.Message{
			ChatJID: jid, PlatformID: fmt.Sprintf("old-%d-%d", n, i), Direction: msg.In, Sender: "telegram:7", SenderName: "Alice",
			Content: "something that was written some time ago", Timestamp: at, ReceivedAt: at, Source: "teled",
		}
		if _, _, err := tx.PutMessage(rows[i]); err != nil {
			return err
		}
	}
	turn := &msg.Turn{Kind: msg.Conversation, Folder: groupFolder(0), ChatJID: jid, Surface: "telegram-dm", Ceiling: 4000,
		ReplyTo: rows[exchange-1].PlatformID, TriggerMessageID: rows[exchange-1].ID, CreatedAt: at}
	if err := tx.PutTurn(turn, 0); err != nil {
		return err
	}
	for _, m := range rows {
		d := store.Decision{Disposition: msg.Routed, Reason: msg.ReasonRoute, RoutedTo: turn.Folder, TurnID: turn.ID}
		if err := tx.Decide(m.ID, d, at); err != nil {
			return err
		}
	}
	_, _, err := tx.PutMessage(&msg.Message{
		ChatJID: jid, PlatformID: fmt.Sprintf("old-%d", n), Direction: msg.Out, IsBot: true, Sender: "agent:" + turn.Folder,
		Content: "and what was answered to it", ReplyToID: turn.ReplyTo, Timestamp: at, ReceivedAt: at,
		Source: msg.SourceAgent, TurnID: turn.ID, OutState: msg.OutSent,
	})
	if err != nil {
		return err
	}
	return tx.FinishTurn(turn, msg.TurnDone, msg.ReasonAnswered, "", at)
}
