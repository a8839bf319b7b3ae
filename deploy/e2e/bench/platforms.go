package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/deploy/e2e/harness"
	"arizuko/pkg/config"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
	"arizuko/pkg/wake"
)

// platform is one whose adapter is measured, and what it allows.
type platform struct {
	name string
	make func(chats int) chatsim.Platform
	// account and chat are how fast messages may be sent over all chats and into a DM: so many at
	// once, and from then on one in every so often. The platforms' own documentation says so.
	account, chat rate
}

// rate is how fast something may be done: the first few at once.
type rate struct {
	every time.Duration
	burst int
}

// takes is how long it takes to do something n times.
func (r rate) takes(n int) time.Duration { return time.Duration(max(n-r.burst, 0)) * r.every }

func platforms() []platform {
	return []platform{
		{"Telegram", func(chats int) chatsim.Platform {
			return chatsim.NewTelegram(chatsim.Size{DMs: chats}, telegram.Options{RateLimits: true})
		}, rate{time.Second / 30, 30}, rate{time.Second, 3}},
		{"Discord", func(chats int) chatsim.Platform {
			return chatsim.NewDiscord(chatsim.Size{DMs: chats}, discord.Options{RateLimits: true})
		}, rate{time.Second / 50, 50}, rate{time.Second, 5}},
		{"Slack", func(chats int) chatsim.Platform {
			return chatsim.NewSlack(chatsim.Size{DMs: chats}, slack.Options{RateLimits: true})
		}, rate{}, rate{time.Second, 3}},
	}
}

// adapters measures each platform's adapter in front of a fake of that platform.
func (b *bench) adapters(ctx context.Context) (all []line, err error) {
	for _, p := range platforms() {
		lines, err := b.adapter(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, lines...)
	}
	return all, nil
}

func (b *bench) adapter(ctx context.Context, p platform) (lines []line, err error) {
	chats := b.pick(100, 5)
	f, err := b.front(ctx, p.make(chats))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	heard, err := f.hear(ctx, b.pick(1000, 20))
	if err != nil {
		return nil, err
	}
	said, err := f.say(ctx, b.pick(500, 10), p)
	if err != nil {
		return nil, err
	}
	lines = []line{
		{what: p.name + ": somebody writes → inbound row, p50", unit: "ms", budget: 2, measured: percentile(50, heard)},
		{what: p.name + ": … p99", unit: "ms", measured: percentile(99, heard)},
		{what: p.name + ": outbound row → request, p50", unit: "ms", budget: 2, measured: percentile(50, said)},
		{what: p.name + ": … p99", unit: "ms", measured: percentile(99, said)},
	}
	rows, much := b.pick(9, 3), b.pick(100, 10)
	took, err := f.flood(ctx, rows, much)
	if err != nil {
		return nil, err
	}
	others := (chats - 1) * rows
	// What the busy chat may send while they do counts too. In a quick run there is too little.
	meanwhile := min(much, p.chat.burst+int(p.account.takes(others)/p.chat.every))
	allowed := max(p.account.takes(others+meanwhile), p.chat.takes(rows), time.Second)
	return append(lines, line{
		what: fmt.Sprintf("%s: %d rows to %d chats, until all arrived but those of one chat that has %d more", p.name, others, chats-1, much),
		note: fmt.Sprintf("%.3g s; the platform allows %.3g s", took.Seconds(), allowed.Seconds()),
		unit: "×", budget: 1.2, measured: took.Seconds() / allowed.Seconds(),
	}), nil
}

// front is an adapter with its platform in front of it, and us in gated's place behind.
type front struct {
	*harness.Instance
	world  chatsim.Platform
	st     *store.Store
	poker  *wake.Poker
	wake   *wake.Listener
	commit atomic.Int64 // when the last commit was done, unix ns
}

func (b *bench) front(ctx context.Context, w chatsim.Platform) (*front, error) {
	i, err := harness.NewIn(b.dir, b.bin)
	if err != nil {
		return nil, err
	}
	f := &front{Instance: i, world: w}
	if err := f.start(ctx); err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func (f *front) start(ctx context.Context) error {
	env, err := f.world.Serve(f.Host)
	if err != nil {
		return err
	}
	f.Env = append(append(f.Env, "LOG_LEVEL=warn"), env...)
	if err := f.Migrate(); err != nil {
		return err
	}
	daemon := f.world.Info().Daemon
	if err := f.Start(daemon); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startMost)
	defer cancel()
	if err := f.AwaitReady(ctx, daemon); err != nil {
		return err
	}
	data := config.Base{Data: f.Data}
	if f.wake, err = wake.Listen(data.RunDir(), "gated"); err != nil {
		return err
	}
	f.poker = wake.NewPoker(data.RunDir(), func(string, error) {})
	f.st, err = store.Open(ctx, store.Options{
		Path: filepath.Join(f.Data, "arizuko.db"), Autocheckpoint: store.DefaultAutocheckpoint,
		Poke: func(daemon string) {
			f.commit.Store(time.Now().UnixNano())
			f.poker.Poke(daemon)
		},
	})
	return err
}

func (f *front) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopMost)
	defer cancel()
	var errs []error
	if daemon := f.world.Info().Daemon; f.Running(daemon) {
		errs = append(errs, f.Stop(ctx, daemon))
	}
	if f.poker != nil {
		f.poker.Close()
	}
	if f.wake != nil {
		errs = append(errs, f.wake.Close())
	}
	if f.st != nil {
		errs = append(errs, f.st.Close())
	}
	return errors.Join(append(errs, f.world.Close(), f.Close())...)
}

// hear has people write n messages, one at a time, and returns how long each took to be a row
// that gated would have read. What comes first is not counted: the adapter connects with it.
func (f *front) hear(ctx context.Context, n int) (all []time.Duration, err error) {
	const warmUp = 5
	places := f.world.Conversations()
	for i := range n + warmUp {
		if err := pause(ctx); err != nil {
			return nil, err
		}
		took, err := f.hearOne(ctx, chatsim.Action{Conversation: places[i%len(places)], Verb: msg.VerbMessage, Text: fmt.Sprintf("message %d", i)})
		if err != nil {
			return nil, err
		}
		if i >= warmUp {
			all = append(all, took)
		}
	}
	return all, nil
}

func (f *front) hearOne(ctx context.Context, a chatsim.Action) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerMost)
	defer cancel()
	began := time.Now()
	id, err := f.world.Do(a)
	if err != nil {
		return 0, err
	}
	for {
		m, err := f.st.MessageByPlatformID(ctx, a.Chat, id)
		if err != nil || m != nil {
			return time.Since(began), err
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("message %s in %s is no row: %w", id, a.Chat, ctx.Err())
		case <-f.wake.C():
		}
	}
}

// dms are the chats in which one may send at DMs' rate.
func (f *front) dms() (all []string) {
	for _, p := range f.world.Conversations() {
		if !p.NeedsMention {
			all = append(all, p.Chat)
		}
	}
	return all
}

func outbound(chat, text string) *msg.Message {
	now := time.Now().UnixMilli()
	return &msg.Message{
		ChatJID: chat, Direction: msg.Out, Kind: msg.KindMessage, Source: msg.SourceAgent, OutState: msg.OutQueued,
		Content: text, Timestamp: now, ReceivedAt: now,
	}
}

// say has n rows sent, one at a time and slower than the platform allows, and returns how long
// each took from its commit to the request.
func (f *front) say(ctx context.Context, n int, p platform) (all []time.Duration, err error) {
	dms := f.dms()
	spacing := max(p.account.every, p.chat.every/time.Duration(len(dms))) * 5 / 4
	for i := range n {
		if err := wait(ctx, spacing); err != nil {
			return nil, err
		}
		before := len(f.world.Arrivals())
		if _, _, err := f.st.PutMessage(ctx, outbound(dms[i%len(dms)], fmt.Sprintf("row %d", i))); err != nil {
			return nil, err
		}
		arrived, err := f.await(ctx, before+1)
		if err != nil {
			return nil, err
		}
		all = append(all, arrived[before].At.Sub(time.Unix(0, f.commit.Load())))
	}
	return all, nil
}

// await returns what has arrived once it is so many.
func (f *front) await(ctx context.Context, n int) (all []chatsim.Arrival, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answerMost)
	defer cancel()
	return all, harness.Await(ctx, fmt.Sprintf("%d messages to arrive", n), func() (bool, error) {
		all = f.world.Arrivals()
		return len(all) >= n, nil
	})
}

// flood has so many rows sent to each chat but one, which has much more to get and is first, and
// returns how long it took until the others had theirs. No call may be refused for its haste.
func (f *front) flood(ctx context.Context, rows, much int) (time.Duration, error) {
	dms := f.dms()
	before := len(f.world.Arrivals())
	began := time.Now()
	err := f.st.Write(ctx, func(tx *store.Tx) error {
		for i := range much {
			if _, _, err := tx.PutMessage(outbound(dms[0], fmt.Sprintf("much %d", i))); err != nil {
				return err
			}
		}
		for i := range rows {
			for _, chat := range dms[1:] {
				if _, _, err := tx.PutMessage(outbound(chat, fmt.Sprintf("one %d", i))); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	others := (len(dms) - 1) * rows
	var last time.Time
	ctx, cancel := context.WithTimeout(ctx, 2*answerMost)
	defer cancel()
	err = harness.Await(ctx, "the other chats' rows to arrive", func() (bool, error) {
		n := 0
		for _, a := range f.world.Arrivals()[before:] {
			if strings.HasPrefix(a.Text, "one ") {
				n, last = n+1, a.At
			}
		}
		return n >= others, nil
	})
	if refused := f.world.RateLimited(); err == nil && refused > 0 {
		err = fmt.Errorf("%d calls were refused: they came too fast", refused)
	}
	return last.Sub(began), err
}
