// Adapter stands for Telegram's where the path is put to the test: it runs in the shell that
// every adapter runs in, on a platform made for the purpose, the world of the stress program.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"time"

	"arizuko/deploy/stress/wire"
	"arizuko/pkg/adapter"
	"arizuko/pkg/config"
	"arizuko/pkg/daemon"
	"arizuko/pkg/msg"
	"arizuko/pkg/store"
)

// partSize of the world is small, so that many rows take more than one part.
const partSize = 90

func main() {
	program := daemon.Program{Name: "teled", Serve: serve}
	os.Exit(program.Run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
}

// settings come from the environment.
type settings struct {
	config.Base
	Addr  config.Addr   `env:"TELED_ADDR" envDefault:"127.0.0.1:8091" doc:"where it listens"`
	World config.URL    `env:"WORLD_URL" doc:"where the world is"`
	Poll  time.Duration `env:"POLL_INTERVAL" envDefault:"2s" doc:"how often it looks for outbound rows"`
}

func serve(ctx context.Context) error {
	cfg, err := config.Load[settings](os.Environ())
	if err != nil {
		return err
	}
	p, err := daemon.Start(ctx, daemon.Options{
		Name: "teled", Base: cfg.Base, Addr: cfg.Addr, Log: os.Stderr, Checkpoint: store.DefaultAutocheckpoint,
	})
	if err != nil {
		return err
	}
	w := &world{url: string(cfg.World)}
	shell := adapter.New(w, adapter.Options{
		Platform: "telegram", Daemon: "teled", Store: p.Store, Heart: p.Heart, Wake: p.Wake.C(), Poll: cfg.Poll,
		Mark: true, Log: p.Log, Metrics: p.Metrics, Now: p.Now,
	})
	p.Heart.Report(daemon.Connected, "")
	return p.Run(ctx, shell.Run, func(ctx context.Context) error { return w.listen(ctx, shell, p) })
}

// world is the platform as the adapter sees it.
type world struct{ url string }

// listen stores what happens in the world together with how far it was read; the next question
// confirms it.
func (w *world) listen(ctx context.Context, shell *adapter.Shell, p *daemon.Process) error {
	value, err := p.Store.DaemonCursor("teled", "world")
	if err != nil {
		return err
	}
	after, _ := strconv.ParseInt(value, 10, 64) // 0 at first
	for ctx.Err() == nil {
		var updates []wire.Update
		err := w.call(ctx, fmt.Sprintf("/updates?after=%d", after), nil, &updates)
		if err == nil && len(updates) > 0 {
			err = w.store(ctx, shell, updates)
		}
		if err != nil && ctx.Err() == nil {
			p.Log.Error("cannot take what happened; trying again", "err", err)
			wait(ctx, 100*time.Millisecond)
			continue
		}
		if len(updates) > 0 {
			after = updates[len(updates)-1].ID
		}
	}
	return nil
}

func (w *world) store(ctx context.Context, shell *adapter.Shell, updates []wire.Update) error {
	in := adapter.Inbound{Cursor: &adapter.Cursor{Key: "world", Value: strconv.FormatInt(updates[len(updates)-1].ID, 10)}}
	for _, u := range updates {
		in.Messages = append(in.Messages, &msg.Message{
			ChatJID: u.Chat, PlatformID: strconv.FormatInt(u.ID, 10), Sender: u.Sender, SenderName: u.Sender, Verb: u.Verb,
			Content: u.Text, Topic: u.Thread, ThreadID: u.Thread, TargetID: u.Target,
		})
	}
	return shell.Receive(ctx, in)
}

// Cut implements adapter.Platform.
func (w *world) Cut(m *msg.Message) (parts []adapter.Part, err error) {
	text := []rune(m.Content)
	for from := 0; from == 0 || from < len(text); from += partSize {
		parts = append(parts, wire.Send{
			Row: m.ID, Part: len(parts), Chat: m.ChatJID, Thread: m.ThreadID, Text: string(text[from:min(len(text), from+partSize)]),
		})
	}
	return parts, nil
}

// Mark implements adapter.Marker.
func (w *world) Mark(part adapter.Part) adapter.Part {
	s := part.(wire.Send)
	s.Marked = true
	return s
}

// Send implements adapter.Platform.
func (w *world) Send(ctx context.Context, _ *msg.Message, part adapter.Part) (platformID string, err error) {
	var sent wire.SentAs
	err = w.call(ctx, "/send", part, &sent)
	return sent.ID, err
}

// call posts in, or asks if there is none, and reads the answer.
func (w *world) call(ctx context.Context, path string, in, out any) error {
	method, body := http.MethodGet, []byte(nil)
	if in != nil {
		method = http.MethodPost
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &adapter.Failure{Class: msg.Transient, Err: fmt.Errorf("the world says %s", res.Status)}
	}
	return json.NewDecoder(res.Body).Decode(out)
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
