package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/failpoint"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// groups of the instance. The first has a child, which people call by name.
var groups = []string{"main", "main/eng", "second"}

// routes of a platform: whoever writes in private is answered, in groups whoever calls.
func routes(platform, dms string) []msg.Route {
	all := "platform=" + platform
	return []msg.Route{
		{Match: all + " room=" + dms, Target: "main"},
		{Match: all + " verb=mention", Target: "main"},
		{Match: all + " verb=reply", Target: "main"},
		{Match: all, Target: "main#observe"},
	}
}

// web and foreigners are where people write that no world has: in web chats, and where the adapter is
// a foreign one.
var (
	web = []chatsim.Conversation{
		{Chat: "web:main"}, {Chat: "web:main", Topic: "#side"}, {Chat: "web:second", NoChildGroup: true},
	}
	foreigners = []chatsim.Conversation{
		{Chat: channel, NeedsMention: true}, {Chat: channel, Thread: "t1", Topic: "t1", NeedsMention: true}, {Chat: "matrix:dm-1", Mutates: true},
	}
)

const channel = "matrix:hall"

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
	worlds  map[string]chatsim.Platform // platform → what people there write in
	sober   [][]chatsim.Conversation    // where what is said must come to something, by platform
	fussy   []chatsim.Conversation      // and where only the rows say what must
	posts   map[string]*poster
	foreign *foreignChat
	failure failure
	hostile bool                            // some messages make the agent fail
	fussed  map[chatsim.Conversation]string // the last message there that something can be done about
	written int                             // so that all texts are different
	unseen  []key                           // by chat and platform id: what may not be stored yet

	all []said
}

func newCrowd(random *rand.Rand, worlds []chatsim.Platform, dashd *httpx.Client, f *foreignChat) *crowd {
	c := &crowd{
		random: random, worlds: map[string]chatsim.Platform{}, posts: map[string]*poster{}, foreign: f, fussed: map[chatsim.Conversation]string{},
	}
	all := [][]chatsim.Conversation{web, foreigners}
	for _, w := range worlds {
		platform := w.Info().Platform
		c.worlds[platform] = w
		all = append(all, w.Conversations())
	}
	for _, places := range all {
		var sober []chatsim.Conversation
		for _, p := range places {
			if p.Mutates {
				c.fussy = append(c.fussy, p)
			} else {
				sober = append(sober, p)
			}
		}
		c.sober = append(c.sober, sober)
	}
	for _, p := range web {
		if c.posts[p.Chat] == nil {
			c.posts[p.Chat] = &poster{dashd: dashd, folder: msg.AddressedFolder(p.Chat)}
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
		c.fuss(ctx)
		return
	}
	there := c.sober[c.random.IntN(len(c.sober))]
	p := there[c.random.IntN(len(there))]
	told := c.text()
	content, verb := told, msg.VerbMessage
	if p.NeedsMention && c.random.IntN(2) == 0 {
		verb = msg.VerbMention
	}
	sure := !p.NeedsMention || verb == msg.VerbMention
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
	if p.NoChildGroup {
		content = strings.TrimPrefix(content, "@eng ")
	}
	c.say(ctx, p, said{p.Chat, content, told, sure}, verb)
}

// write has somebody write text that must be answered.
func (c *crowd) write(ctx context.Context, p chatsim.Conversation, text, verb string) {
	c.say(ctx, p, said{p.Chat, text, text, true}, verb)
}

func (c *crowd) say(ctx context.Context, p chatsim.Conversation, s said, verb string) {
	c.all = append(c.all, s)
	if post := c.posts[p.Chat]; post != nil {
		post.add(webMessage{s.content, p.Topic, fmt.Sprint(len(c.all))})
		return
	}
	c.do(ctx, chatsim.Action{Conversation: p, Verb: verb, Text: s.content})
}

// do has somebody do something outside the web, and returns the id of what they wrote.
func (c *crowd) do(ctx context.Context, a chatsim.Action) (id string) {
	var err error
	platform, _ := msg.SplitJID(a.Chat)
	if w := c.worlds[platform]; w != nil {
		id, err = w.Do(a)
		if err == nil && id != "" && !a.Mutates {
			c.unseen = append(c.unseen, key{a.Chat, id})
		}
	} else {
		id, err = c.foreign.do(ctx, c.random, a)
	}
	if err != nil && ctx.Err() == nil {
		c.failure.set(fmt.Errorf("write in %s: %w", a.Chat, err))
	}
	return id
}

// greet has somebody write in each place of the worlds, so that adapters know them: of a chat that
// is opened while they are away, not every platform tells them afterwards.
func (c *crowd) greet(ctx context.Context) {
	for _, w := range c.worlds {
		for _, p := range w.Conversations() {
			c.do(ctx, chatsim.Action{Conversation: p, Verb: msg.VerbMessage, Text: "silent hello"})
		}
	}
}

// stored says whether all that was written in the worlds is in the rows.
func (c *crowd) stored(db *sql.DB) (bool, error) {
	for ; len(c.unseen) > 0; c.unseen = c.unseen[1:] {
		var n int
		first := c.unseen[0]
		err := db.QueryRow(`SELECT count(*) FROM messages WHERE chat_jid = ? AND platform_id = ?`, first.chat, first.text).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("look whether %s is stored: %w", first, err)
		}
		if n == 0 {
			return false, nil
		}
	}
	return true, nil
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
	text := fmt.Sprintf("%sm%d", order, c.written)
	if c.random.IntN(50) == 0 {
		text += strings.Repeat(" and so on", (longest-len(text))/len(" and so on"))
	}
	return text
}

// longest text that every platform takes from people, in bytes; the answer to it takes more parts
// than one.
const longest = 1980

// fuss has somebody pin, stop, edit, delete, react or begin anew.
func (c *crowd) fuss(ctx context.Context) {
	a := chatsim.Action{Conversation: c.fussy[c.random.IntN(len(c.fussy))], Verb: msg.VerbMessage}
	switch n := c.random.IntN(14); {
	case n < 5:
		a.Text = c.text()
	case n < 7:
		a.Text = []string{"#pinned", "#", "@eng", "@"}[c.random.IntN(4)]
	case n == 7:
		a.Text = "/stop"
	case n == 8:
		a.Text = "/new #task " + c.text()
	case n < 11:
		a.Verb, a.Text = msg.VerbEdit, c.text()
	case n == 11:
		a.Verb = msg.VerbDelete
	default:
		a.Verb, a.Text = msg.VerbReaction, "👍"
	}
	if a.Verb == msg.VerbMessage {
		c.fussed[a.Conversation] = c.do(ctx, a)
	} else if a.Target = c.fussed[a.Conversation]; a.Target != "" {
		c.do(ctx, a)
	}
	if a.Verb == msg.VerbDelete {
		delete(c.fussed, a.Conversation)
	}
	c.written++
}

// provoke has somebody do what rarely happens by itself: edit a message before it is read, begin
// anew, or write to an agent at work, or stop it.
func (c *crowd) provoke(ctx context.Context, p failpoint.Point) {
	a := chatsim.Action{Conversation: c.fussy[0], Verb: msg.VerbMessage, Text: "slow 1 " + c.text()}
	switch p {
	case failpoint.ChangeContent.Before(), failpoint.ChangeContent.After():
		id := c.do(ctx, a)
		a.Verb, a.Target, a.Text = msg.VerbEdit, id, c.text()
		c.do(ctx, a)
	case failpoint.Pin.Before(), failpoint.Pin.After():
		a.Text = "#pinned"
		c.do(ctx, a)
	case failpoint.ResetSession.Before(), failpoint.ResetSession.After(), failpoint.TakeSystem.Before(), failpoint.TakeSystem.After():
		a.Text = "/new " + c.text()
		c.do(ctx, a)
	case failpoint.RequeueTurn.Before(), failpoint.RequeueTurn.After(): // who stops an agent stops it for others too
		other := chatsim.Action{Conversation: c.fussy[1], Verb: msg.VerbMessage, Text: "@"}
		c.do(ctx, other)
		c.do(ctx, chatsim.Action{Conversation: a.Conversation, Verb: msg.VerbMessage, Text: "@"})
		c.do(ctx, a)
		pause(ctx, startsMost)
		other.Text = "/stop"
		c.do(ctx, other)
	case failpoint.Piping, failpoint.OfferTurn.Before(), failpoint.OfferTurn.After():
		c.do(ctx, a)
		pause(ctx, startsMost)
		a.Text = c.text()
		c.do(ctx, a)
	case failpoint.CancelTurn.Before(), failpoint.CancelTurn.After():
		c.do(ctx, a)
		pause(ctx, startsMost)
		a.Text = "/stop"
		c.do(ctx, a)
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
	for _, w := range c.worlds {
		if !w.AllAcknowledged() {
			return false
		}
	}
	return true
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
