package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/store/storetest"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

// platform is a simulated platform and its documented limits.
type platform struct {
	name    string
	make    func(chats int) chatsim.Platform
	account limit // of messages to all chats together
	chat    limit // of messages to one DM
}

// limit allows a burst at once, and from then on one message per interval.
type limit struct {
	interval time.Duration
	burst    int
}

// minDuration is the shortest time in which n messages can be sent.
func (l limit) minDuration(n int) time.Duration { return time.Duration(max(n-l.burst, 0)) * l.interval }

func platforms() []platform {
	return []platform{
		{"Telegram", func(chats int) chatsim.Platform {
			return chatsim.NewTelegram(chatsim.Size{DMs: chats}, telegram.Options{RateLimits: true})
		}, limit{time.Second / 30, 30}, limit{time.Second, 3}},
		{"Discord", func(chats int) chatsim.Platform {
			return chatsim.NewDiscord(chatsim.Size{DMs: chats}, discord.Options{RateLimits: true})
		}, limit{time.Second / 50, 50}, limit{time.Second, 5}},
		{"Slack", func(chats int) chatsim.Platform {
			return chatsim.NewSlack(chatsim.Size{DMs: chats}, slack.Options{RateLimits: true})
		}, limit{}, limit{time.Second, 3}},
	}
}

// adapters measures each adapter with a simulated platform.
func (b *bench) adapters(ctx context.Context) (all []figure, err error) {
	for _, p := range platforms() {
		figures, err := b.measureAdapter(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, figures...)
	}
	return all, nil
}

func (b *bench) measureAdapter(ctx context.Context, p platform) (figures []figure, err error) {
	chats := b.pick(100, 5)
	s, err := b.newAdapterSystem(ctx, p.make(chats+liveTurns))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stopSystems()) }()

	inbound, err := s.measureInbound(ctx, b.pick(1000, 20))
	if err != nil {
		return nil, err
	}
	outbound, err := s.measureOutbound(ctx, b.pick(500, 10), p)
	if err != nil {
		return nil, err
	}
	commits, err := s.measureCommits(ctx, b.pick(500, 10))
	if err != nil {
		return nil, err
	}
	in, out, commit := percentile(50, inbound), percentile(50, outbound), percentile(50, commits)
	figures = []figure{
		{name: p.name + ": user's message → inbound row, p50", note: "floor: a commit", unit: "ms", ratio: 4,
			measured: in, compared: in, floor: commit},
		{name: p.name + ": user's message → inbound row, p99", unit: "ms", measured: percentile(99, inbound)},
		{name: p.name + ": outbound row → request, p50", note: "floor: a commit", unit: "ms", ratio: 4, measured: out,
			compared: out, floor: commit},
		{name: p.name + ": outbound row → request, p99", unit: "ms", measured: percentile(99, outbound)},
	}

	rows, many := b.pick(9, 3), b.pick(100, 10)
	before := s.platform.RateLimited()
	took, err := s.measureFloodBesideTurns(ctx, rows, many)
	if err != nil {
		return nil, err
	}
	refused := float64(s.platform.RateLimited() - before)
	others := (chats - 1) * rows
	// Messages that the busy chat may send meanwhile count too. A quick run has too few rows for that.
	meanwhile := min(many, p.chat.burst+int(p.account.minDuration(others)/p.chat.interval))
	allowed := max(p.account.minDuration(others+meanwhile), p.chat.minDuration(rows), time.Second)
	ratio := took.Seconds() / allowed.Seconds()
	return append(figures, figure{
		name: fmt.Sprintf("%s: flood, time ÷ the time that the platform's limits allow", p.name),
		note: fmt.Sprintf("%.3g s ÷ %.3g s", took.Seconds(), allowed.Seconds()),
		unit: "×", budget: 1.2, measured: ratio, compared: ratio,
	}, figure{
		name:   fmt.Sprintf("%s: flood, calls refused for their rate", p.name),
		budget: none, measured: refused,
	}), nil
}

// adapterSystem is an adapter between a simulated platform and this program, which stands in for gated.
type adapterSystem struct {
	platform chatsim.Platform
	gated    *fakeDaemon
}

func (b *bench) newAdapterSystem(ctx context.Context, p chatsim.Platform) (*adapterSystem, error) {
	s, err := b.newSystemAs(ctx, "gated", "", p)
	if err != nil {
		return nil, err
	}
	return &adapterSystem{p, s.adapter}, startDaemons(ctx, s.instance, p.Info().Daemon)
}

// measureInbound sends n messages as users, one at a time, and returns how long each took to become a
// row that gated would have read. The first messages don't count: the adapter opens connections then.
func (s *adapterSystem) measureInbound(ctx context.Context, n int) (all []time.Duration, err error) {
	const warmUp = 5
	conversations := s.platform.Conversations()
	for i := range n + warmUp {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		took, err := s.measureMessage(ctx, chatsim.Action{
			Conversation: conversations[i%len(conversations)], Verb: msg.VerbMessage,
			Text: fmt.Sprintf("message %d", i),
		})
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			all = append(all, took)
		}
	}
	return all, nil
}

func (s *adapterSystem) measureMessage(ctx context.Context, a chatsim.Action) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	began := time.Now()
	id, err := s.platform.Do(a)
	if err != nil {
		return 0, err
	}
	for {
		m, err := s.gated.store.MessageByPlatformID(ctx, a.Chat, id)
		if err != nil || m != nil {
			return time.Since(began), err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("message %s in %s has no row: %w", id, a.Chat, ctx.Err())
		case <-s.gated.wake.C():
		}
	}
}

// measureCommits commits n messages of a chat that no daemon serves, one at a time, and returns how long each
// took: an adapter commits once before a row is there, and once before it sends a part.
func (s *adapterSystem) measureCommits(ctx context.Context, n int) (all []time.Duration, err error) {
	for i := range n {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		m := &msg.Message{ChatJID: "bench:1", PlatformID: fmt.Sprint(i), Direction: msg.In, Sender: "bench:7",
			Content: "a commit"}
		began := time.Now()
		if _, _, err := storetest.Put(ctx, s.gated.store, m); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
	return all, nil
}

// dms are the chats with the limit of DMs, but for those of live turns.
func (s *adapterSystem) dms() []string { return s.allDMs()[liveTurns:] }

func (s *adapterSystem) allDMs() (all []string) {
	for _, c := range s.platform.Conversations() {
		if !c.NeedsMention {
			all = append(all, c.Chat)
		}
	}
	return all
}

func outboundRow(chat, text string) *msg.Message {
	now := time.Now().UnixMilli()
	return &msg.Message{
		ChatJID: chat, Direction: msg.Out, Kind: msg.KindMessage, Source: msg.SourceAgent, OutState: msg.OutQueued,
		Content: text, Timestamp: now, ReceivedAt: now,
	}
}

// measureOutbound queues n rows, one at a time and slower than the platform's limits, and returns the
// time from each commit to the request.
func (s *adapterSystem) measureOutbound(ctx context.Context, n int, p platform) (all []time.Duration, err error) {
	dms := s.dms()
	interval := max(p.account.interval, p.chat.interval/time.Duration(len(dms))) * 5 / 4
	for i := range n {
		if err := wait(ctx, interval); err != nil {
			return nil, err
		}
		before := len(s.platform.Arrivals())
		if _, _, err := storetest.Put(ctx, s.gated.store, outboundRow(dms[i%len(dms)], fmt.Sprintf("row %d", i))); err != nil {
			return nil, err
		}
		arrivals, err := s.awaitArrivals(ctx, before+1)
		if err != nil {
			return nil, err
		}
		all = append(all, arrivals[before].At.Sub(time.Unix(0, s.gated.commit.Load())))
	}
	return all, nil
}

// awaitArrivals waits for n arrivals and returns all.
func (s *adapterSystem) awaitArrivals(ctx context.Context, n int) (all []chatsim.Arrival, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	err = harness.Await(ctx, fmt.Sprintf("%d messages to arrive", n), func() (bool, error) {
		all = s.platform.Arrivals()
		return len(all) >= n, nil
	})
	return all, err
}

// measureFlood queues many rows for the first chat, and then some for each other chat. It returns how
// long the others' rows took to arrive.
func (s *adapterSystem) measureFlood(ctx context.Context, rows, many int) (time.Duration, error) {
	dms := s.dms()
	began := time.Now()
	if err := s.gated.store.Write(ctx, func(tx *store.Tx) error { return putFlood(tx, dms, rows, many) }); err != nil {
		return 0, err
	}

	others := (len(dms) - 1) * rows
	var last time.Time
	ctx, cancel := context.WithTimeout(ctx, 2*answerTimeout)
	defer cancel()
	err := harness.Await(ctx, "rows of the other chats to arrive", func() (bool, error) {
		n := 0
		for _, a := range s.platform.Arrivals() { // previews that are edited change their places
			if strings.HasPrefix(a.Text, "other ") {
				n, last = n+1, a.At
			}
		}
		return n >= others, nil
	})
	return last.Sub(began), err
}

func putFlood(tx *store.Tx, dms []string, rows, many int) error {
	for i := range many {
		if _, _, err := tx.PutMessage(outboundRow(dms[0], fmt.Sprintf("busy %d", i))); err != nil {
			return err
		}
	}
	for i := range rows {
		for _, chat := range dms[1:] {
			if _, _, err := tx.PutMessage(outboundRow(chat, fmt.Sprintf("other %d", i))); err != nil {
				return err
			}
		}
	}
	return nil
}
