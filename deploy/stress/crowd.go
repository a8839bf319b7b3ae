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
	"arizuko/pkg/faultpoint"
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
	hostile bool              // some messages make the agent fail
	fussed  map[string]string // chat → the last message there that something can be done about
	written int               // so that all texts are different

	all []said
}

func newCrowd(random *rand.Rand, w *world, dashd *httpx.Client, f *foreign) *crowd {
	c := &crowd{random: random, world: w, posts: map[string]*poster{}, foreign: f, fussed: map[string]string{}}
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
	if c.random.IntN(5) == 0 {
		c.fuss()
		return
	}
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
		content, told, sure = "/ping "+told, "", true
	}
	if p.chat == "telegram:103" || p.chat == "web:second" {
		content = strings.TrimPrefix(content, "@eng ") // no child there
	}
	c.say(ctx, p, said{p.chat, content, told, sure}, verb)
}

// write has somebody write text that must be answered.
func (c *crowd) write(ctx context.Context, p place, text, verb string) {
	c.say(ctx, p, said{p.chat, text, text, true}, verb)
}

func (c *crowd) say(ctx context.Context, p place, s said, verb string) {
	c.all = append(c.all, s)
	switch post := c.posts[p.chat]; {
	case post != nil:
		post.add(webMessage{s.content, p.topic, fmt.Sprint(len(c.all))})
	case p.chat == channel:
		if err := c.foreign.write(ctx, c.random, p.chat, s.content, verb == msg.VerbMention); err != nil && ctx.Err() == nil {
			c.failure.set(err)
		}
	default:
		c.world.do(wire.Update{Chat: p.chat, Thread: p.thread, Sender: "telegram:7", Verb: verb, Text: s.content})
	}
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
	case n == 29:
		order = fmt.Sprintf("slow 1.%d ", c.random.IntN(5))
	case n == 27 && c.hostile:
		order = "crash "
	case n == 28 && c.hostile:
		order = "error "
	}
	c.written++
	return fmt.Sprintf("%sm%d", order, c.written)
}

// fussy are the chats where people do what changes the fate of other messages: only the rows say
// what must become of these.
var fussy = []string{"telegram:104", "telegram:105", "telegram:-203"}

// fuss has somebody pin, stop, edit, delete, react or begin anew.
func (c *crowd) fuss() {
	chat := fussy[c.random.IntN(len(fussy))]
	u := wire.Update{Chat: chat, Sender: "telegram:7", Verb: msg.VerbMessage}
	switch n := c.random.IntN(14); {
	case n < 5:
		u.Text = c.text()
	case n < 7:
		u.Text = []string{"#pinned", "#", "@eng", "@"}[c.random.IntN(4)]
	case n == 7:
		u.Text = "/stop"
	case n == 8:
		u.Text = "/new #task " + c.text()
	case n < 11:
		u.Verb, u.Text = msg.VerbEdit, c.text()
	case n == 11:
		u.Verb = msg.VerbDelete
	default:
		u.Verb, u.Text = msg.VerbReaction, "👍"
	}
	if u.Verb != msg.VerbMessage {
		u.Target = c.fussed[chat]
	}
	id := c.world.do(u)
	if u.Verb == msg.VerbMessage {
		c.fussed[chat] = fmt.Sprint(id)
	}
	c.written++
}

// provoke has somebody do what rarely happens by itself: edit a message before it is read, or
// stop an agent at work.
func (c *crowd) provoke(ctx context.Context, p faultpoint.Point) {
	u := wire.Update{Chat: fussy[0], Sender: "telegram:7", Verb: msg.VerbMessage, Text: "slow 1 " + c.text()}
	switch p {
	case faultpoint.ChangeContent.Before(), faultpoint.ChangeContent.After():
		id := c.world.do(u)
		u.Verb, u.Target, u.Text = msg.VerbEdit, fmt.Sprint(id), c.text()
		c.world.do(u)
	case faultpoint.Pin.Before(), faultpoint.Pin.After():
		u.Text = "#pinned"
		c.world.do(u)
	case faultpoint.CancelTurn.Before(), faultpoint.CancelTurn.After():
		c.world.do(u)
		pause(ctx, startsMost)
		u.Text = "/stop"
		c.world.do(u)
	}
}

// startsMost is how long an agent may take to begin.
const startsMost = 300 * time.Millisecond

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
