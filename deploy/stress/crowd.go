package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/stress/wire"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// groups of the instance. The first has a child, which people call by name.
var groups = []string{"main", "main/eng", "second"}

// routes of the instance: whoever writes in private is answered, in groups whoever calls.
var routes = []msg.Route{
	{Match: "platform=telegram room=-* verb=mention", Target: "main"},
	{Match: "platform=telegram room=-* verb=reply", Target: "main"},
	{Match: "platform=telegram room=-*", Target: "main#observe"},
	{Match: "chat_jid=telegram:103", Target: "second"},
	{Match: "platform=telegram", Target: "main"},
	{Match: "platform=slack verb=mention", Target: "main"},
	{Match: "platform=slack", Target: "main#observe"},
}

// place is where people write.
type place struct {
	chat, thread, topic string
	calls               bool // only a mention is sure of an answer
}

var places = []place{
	{chat: "telegram:101"}, {chat: "telegram:102"}, {chat: "telegram:103"},
	{chat: "telegram:-201", calls: true},
	{chat: "telegram:-202", thread: "7", calls: true}, {chat: "telegram:-202", thread: "8", calls: true},
	{chat: "web:main"}, {chat: "web:main", topic: "#side"}, {chat: "web:second"},
	{chat: channel, calls: true},
}

// channel is where the foreign adapter's people write.
const channel = "slack:C1"

// said is one message, and what must become of it.
type said struct {
	chat    string
	content string // as it was written
	told    string // what an agent is to be told, once; "" for a command
	sure    bool   // it must be answered; else it may as well be observed
}

// crowd writes messages and remembers them.
type crowd struct {
	random  *rand.Rand
	world   *world
	posts   map[string]*poster
	foreign *foreign
	failure failure
	hostile bool // some messages make the agent fail

	all []said
}

func newCrowd(random *rand.Rand, w *world, dashd *httpx.Client, f *foreign) *crowd {
	c := &crowd{random: random, world: w, posts: map[string]*poster{}, foreign: f}
	for _, p := range places {
		if folder, web := strings.CutPrefix(p.chat, "web:"); web && c.posts[p.chat] == nil {
			c.posts[p.chat] = &poster{dashd: dashd, folder: folder}
		}
	}
	return c
}

// run posts what is written on the web, and delivers to the foreign adapter's people, until ctx
// ends.
func (c *crowd) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, p := range c.posts {
		all.Go(func() { p.run(ctx) })
	}
	all.Go(func() { c.foreign.deliver(ctx, c.failure.set) })
	all.Wait()
}

// speak has somebody write something somewhere.
func (c *crowd) speak(ctx context.Context) {
	p := places[c.random.IntN(len(places))]
	told := c.text()
	content, verb := told, msg.VerbMessage
	if p.calls && c.random.IntN(2) == 0 {
		verb = msg.VerbMention
	}
	sure := !p.calls || verb == msg.VerbMention
	switch c.random.IntN(12) {
	case 0:
		content, sure = "#task "+told, true
	case 1:
		content, sure = "@eng "+told, true
	case 2:
		content, sure = "/new "+told, true
	case 3:
		content, told, sure = fmt.Sprintf("/ping %d", len(c.all)), "", true
	}
	if p.chat == "telegram:103" || p.chat == "web:second" {
		content = strings.TrimPrefix(content, "@eng ") // no child there
	}
	c.all = append(c.all, said{p.chat, content, told, sure})
	if post := c.posts[p.chat]; post != nil {
		post.add(webMessage{content, p.topic, fmt.Sprint(len(c.all))})
		return
	}
	if p.chat == channel {
		if err := c.foreign.write(ctx, c.random, p.chat, content, verb == msg.VerbMention); err != nil && ctx.Err() == nil {
			c.failure.set(err)
		}
		return
	}
	c.world.do(wire.Update{Chat: p.chat, Thread: p.thread, Sender: "telegram:7", Verb: verb, Text: content})
}

// text is what an agent is told, with what it is to do first: the demo agent obeys.
func (c *crowd) text() string {
	order := ""
	switch n := c.random.IntN(60); {
	case n < 18:
		order = fmt.Sprintf("slow 0.%02d ", 1+c.random.IntN(20))
	case n < 24:
		order = "frames 3 "
	case n < 27:
		order = "silent "
	case n == 27 && c.hostile:
		order = "crash "
	case n == 28 && c.hostile:
		order = "error "
	}
	return fmt.Sprintf("%sm%d", order, len(c.all))
}

// quiet says whether everything written has been acknowledged.
func (c *crowd) quiet() bool {
	for _, p := range c.posts {
		if !p.quiet() {
			return false
		}
	}
	return c.world.quiet()
}

// webMessage is one message as the web chat takes it.
type webMessage struct {
	Text     string `json:"text"`
	Topic    string `json:"topic"`
	ClientID string `json:"client_id"`
}

// poster writes into a web chat, in order, each message until dashd has taken it.
type poster struct {
	dashd  *httpx.Client
	folder string

	mu    sync.Mutex
	queue []webMessage
}

func (p *poster) add(m webMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, m)
}

func (p *poster) quiet() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.queue) == 0
}

func (p *poster) first() (webMessage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.queue) == 0 {
		return webMessage{}, false
	}
	return p.queue[0], true
}

// run posts until ctx ends.
func (p *poster) run(ctx context.Context) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		m, any := p.first()
		if !any || p.dashd.Do(ctx, http.MethodPost, "/chat/"+p.folder+"/messages", m, nil) != nil {
			continue // it is down: people try again
		}
		p.mu.Lock()
		p.queue = p.queue[1:]
		p.mu.Unlock()
	}
}
