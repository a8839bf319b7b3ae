package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"arizuko/deploy/e2e/chatsim"
	"arizuko/pkg/httpx"
	"arizuko/pkg/msg"
)

// groups of the instance. The first has a child, which users call by name.
var groups = []string{"main", "main/eng", "second", provokedGroup}

// routes of a platform: every DM is answered; in groups mentions and replies are.
func routes(platform, dms string) []msg.Route {
	all := "platform=" + platform
	return []msg.Route{
		{Match: all + " room=" + dms, Target: "main"},
		{Match: all + " verb=mention", Target: "main"},
		{Match: all + " verb=reply", Target: "main"},
		{Match: all, Target: "main#observe"},
	}
}

// Conversations that no simulated platform has: the web chats, and those of the foreign adapter.
var (
	webConversations = []chatsim.Conversation{
		{Chat: "web:main"}, {Chat: "web:main", Topic: "#side"}, {Chat: "web:second", NoChildGroup: true},
	}
	foreignConversations = []chatsim.Conversation{
		{Chat: foreignChannel, NeedsMention: true},
		{Chat: foreignChannel, Thread: "t1", Topic: "t1", NeedsMention: true},
		{Chat: "matrix:dm-1", Mutates: true},
	}
)

const foreignChannel = "matrix:hall"

// webDaemon is the daemon of the web chat.
const webDaemon = "dashd"

// sentMessage is a message and its expected outcome.
type sentMessage struct {
	chat       string
	content    string // as the user wrote it
	prompt     string // the text that exactly one agent must receive; "" for a command
	mustAnswer bool   // otherwise it may be observed instead
	file       string // content of the attached file, "" for none
}

// generator is the load generator: simulated users who write messages. It records their messages.
type generator struct {
	random    *rand.Rand
	platforms map[string]chatsim.Platform // by prefix of the JID
	tracked   [][]chatsim.Conversation    // each message is checked at the end; by platform
	mutating  []chatsim.Conversation      // users change messages, so only the rows are checked
	web       map[string]*webSender       // by JID
	foreign   *foreignChat
	approver  *approver              // nil: there are no unknown chats
	newcomers []chatsim.Conversation // unknown chats; nil for those of the foreign platform
	unknown   int                    // chats that no route led to a group
	failure   firstError
	hostile   bool // some messages make the agent fail

	lastMessage map[chatsim.Conversation]string // the id of the last message that can be changed
	written     int                             // makes each text unique
	unstored    []key                           // chat and platform id of messages that may not be stored yet

	all []sentMessage

	toolChats    []chatsim.Conversation // of toolsGroup
	toolMessages []toolMessage
	broadcasts   []effect // of broadcasts of operators
	announced    int      // broadcasts that agents were asked for
	posted       int      // number of messages to web chats

	commands map[string][]time.Time // when users wrote the last commands, by chat
}

// newGenerator makes a generator. toolChats are the chats of the group whose agents call tools.
func newGenerator(random *rand.Rand, platforms []chatsim.Platform, toolChats []chatsim.Conversation,
	dashd *httpx.Client, f *foreignChat) *generator {
	g := &generator{
		random: random, platforms: map[string]chatsim.Platform{}, web: map[string]*webSender{}, foreign: f,
		lastMessage: map[chatsim.Conversation]string{}, commands: map[string][]time.Time{},
	}

	all := [][]chatsim.Conversation{webConversations, foreignConversations}
	for _, p := range platforms {
		g.platforms[p.Info().Platform] = p
		all = append(all, p.Conversations())
	}
	for _, conversations := range all {
		var tracked []chatsim.Conversation
		for _, c := range conversations {
			if c.Mutates {
				g.mutating = append(g.mutating, c)
			} else {
				tracked = append(tracked, c)
			}
		}
		g.tracked = append(g.tracked, tracked)
	}

	g.toolChats = toolChats
	for _, c := range slices.Concat(webConversations, toolChats) {
		if platform, _ := msg.SplitJID(c.Chat); platform == msg.PlatformWeb && g.web[c.Chat] == nil {
			g.web[c.Chat] = &webSender{dashd: dashd, folder: msg.AddressedFolder(c.Chat)}
		}
	}
	return g
}

// leaveOutForeign lets users write nowhere on the foreign platform. Newcomers are the unknown chats.
func (g *generator) leaveOutForeign(newcomers []chatsim.Conversation) {
	for i := range g.tracked {
		g.tracked[i] = withoutForeign(g.tracked[i])
	}
	g.tracked = slices.DeleteFunc(g.tracked, func(all []chatsim.Conversation) bool { return len(all) == 0 })
	g.mutating = withoutForeign(g.mutating)
	g.newcomers = newcomers
}

// withoutForeign leaves out conversations of the foreign platform.
func withoutForeign(all []chatsim.Conversation) []chatsim.Conversation {
	return slices.DeleteFunc(slices.Clone(all), func(c chatsim.Conversation) bool {
		return strings.HasPrefix(c.Chat,
			"matrix:")
	})
}

// run posts queued web messages and confirms the rows that the foreign adapter sends, until ctx ends.
func (g *generator) run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range g.web {
		all.Go(func() { s.run(ctx) })
	}
	if g.foreign != nil {
		all.Go(func() { g.foreign.deliver(ctx, g.failure.set) })
	}
	if g.approver != nil {
		all.Go(func() { g.approver.run(ctx) })
	}
	all.Wait()
}

// act performs one random action of a random user.
func (g *generator) act(ctx context.Context) {
	if g.random.IntN(5) == 0 {
		g.mutate(ctx)
		return
	}
	if g.approver != nil && g.knowsUnknown() && g.random.IntN(20) == 0 {
		g.writeFromUnknown(ctx, 1+g.random.IntN(4))
		return
	}

	platform := g.tracked[g.random.IntN(len(g.tracked))]
	c := platform[g.random.IntN(len(platform))]
	prompt := g.text()
	content, verb, file := prompt, msg.VerbMessage, ""
	if c.NeedsMention && g.random.IntN(2) == 0 {
		verb = msg.VerbMention
	}
	mustAnswer := !c.NeedsMention || verb == msg.VerbMention

	switch n := g.random.IntN(12); {
	case n == 0:
		content, mustAnswer = "#task "+prompt, true
	case n == 1:
		content, mustAnswer = "@eng "+prompt, true
	case n == 2 && g.mayCommand(c.Chat, time.Now()):
		content, mustAnswer = msg.CommandIn(c.Chat, "new "+prompt), true
	case n == 3 && g.mayCommand(c.Chat, time.Now()):
		content, prompt, mustAnswer = msg.CommandIn(c.Chat, "ping "+prompt), "", true
	case n == 4:
		file = g.file(c, prompt)
	}
	if c.NoChildGroup {
		content = strings.TrimPrefix(content, "@eng ")
	}
	g.send(ctx, c, sentMessage{c.Chat, content, prompt, mustAnswer, file}, verb)
}

// maxCommands is how many commands the users of a chat write in a minute. A sender has 20, also of those that arrive
// together after an outage.
const maxCommands = 6

// mayCommand reports whether another command may be written in a chat, and counts it.
func (g *generator) mayCommand(chat string, now time.Time) bool {
	last := g.commands[chat]
	if len(last) == maxCommands {
		if now.Sub(last[0]) < time.Minute {
			return false
		}
		last = last[1:]
	}
	g.commands[chat] = append(last, now)
	return true
}

// maxCaption is a length in bytes that every platform accepts for a text with a file.
const maxCaption = 200

// file is the content of a file to attach to a message, "" if the conversation or the text cannot have one.
func (g *generator) file(c chatsim.Conversation, text string) string {
	platform, _ := msg.SplitJID(c.Chat)
	if g.platforms[platform] == nil || len(text) > maxCaption {
		return ""
	}
	return "file of " + text
}

// sendText sends a text that must be answered.
func (g *generator) sendText(ctx context.Context, c chatsim.Conversation, text, verb string) {
	g.send(ctx, c, sentMessage{chat: c.Chat, content: text, prompt: text, mustAnswer: true}, verb)
}

func (g *generator) send(ctx context.Context, c chatsim.Conversation, m sentMessage, verb string) {
	g.all = append(g.all, m)
	var file *chatsim.File
	if m.file != "" {
		file = &chatsim.File{Name: "notes.txt", Data: []byte(m.file)}
	}
	g.post(ctx, c, m.content, file, verb)
}

// post makes a user write a message in any conversation. Messages of web chats have no file.
func (g *generator) post(ctx context.Context, c chatsim.Conversation, content string, file *chatsim.File, verb string) {
	if web := g.web[c.Chat]; web != nil {
		g.posted++
		web.add(webMessage{content, c.Topic, fmt.Sprint(g.posted)})
		return
	}
	g.perform(ctx, chatsim.Action{Conversation: c, Verb: verb, Text: content, File: file})
}

// perform performs an action outside the web chats and returns the id of the new message.
func (g *generator) perform(ctx context.Context, a chatsim.Action) (id string) {
	var err error
	platform, _ := msg.SplitJID(a.Chat)
	if p := g.platforms[platform]; p != nil {
		id, err = p.Do(a)
		if err == nil && id != "" && !a.Mutates {
			g.unstored = append(g.unstored, key{a.Chat, id})
		}
	} else {
		id, err = g.foreign.perform(ctx, g.random, a)
	}
	if err != nil && ctx.Err() == nil {
		g.failure.set(fmt.Errorf("%s in %s: %w", a.Verb, a.Chat, err))
	}
	return id
}

// greet sends a message in each conversation of the platforms, so that adapters know all chats: not
// every platform reports a chat later that was opened while its adapter was down.
func (g *generator) greet(ctx context.Context) {
	for _, p := range g.platforms {
		for _, c := range p.Conversations() {
			g.perform(ctx, chatsim.Action{Conversation: c, Verb: msg.VerbMessage, Text: "silent hello"})
		}
	}
	for _, c := range g.toolChats {
		g.post(ctx, c, "hello", nil, msg.VerbMessage)
	}
}

// allStored reports whether the rows have every message of the platforms.
func (g *generator) allStored(db *sql.DB) (bool, error) {
	for ; len(g.unstored) > 0; g.unstored = g.unstored[1:] {
		var n int
		first := g.unstored[0]
		err := db.QueryRow(`SELECT count(*) FROM messages WHERE chat_jid = ? AND platform_id = ?`, first.chat,
			first.text).Scan(&n)
		if err != nil {
			return false, fmt.Errorf("look up message %s: %w", first, err)
		}
		if n == 0 {
			return false, nil
		}
	}
	return true, nil
}

// text is a unique prompt. It may start with an order that the demo agent obeys.
func (g *generator) text() string {
	order := ""
	switch n := g.random.IntN(60); {
	case n < 18:
		order = fmt.Sprintf("slow 0.%02d ", 1+g.random.IntN(20))
	case n < 24:
		order = "frames 3 "
	case n < 27:
		order = "silent "
	case n == 29:
		order = fmt.Sprintf("slow 1.%d ", g.random.IntN(5))
	case n == 30:
		order = fmt.Sprintf("work stream slow 0.%02d ", 1+g.random.IntN(99))
	case n == 31: // long enough for a preview
		order = fmt.Sprintf("work stream slow 1.%d ", 5+g.random.IntN(5))
	case n == 32:
		order = "silent work stream slow 1.5 "
	case n == 33:
		order = "ask_user red green " // no user answers
	case n == 34: // messages that come meanwhile join its turn
		order = fmt.Sprintf("fold slow 1.%d ", g.random.IntN(9))
	case n == 35:
		order = "ask_permission " // likewise
	case n == 27 && g.hostile:
		order = "crash "
	case n == 28 && g.hostile:
		order = "error "
	}
	text := order + g.plainText()
	if g.random.IntN(50) == 0 {
		text += strings.Repeat(" and so on", (maxText-len(text))/len(" and so on"))
	}
	return text
}

// plainText is a unique prompt without an order.
func (g *generator) plainText() string {
	g.written++
	return fmt.Sprintf("m%d", g.written)
}

// answeredChats are the tracked conversations of an adapter's platform in which every message is answered.
// Those of the web chat have topics of their own.
func (g *generator) answeredChats(daemon string) (all []chatsim.Conversation) {
	if daemon == webDaemon {
		for i := range maxNth {
			all = append(all, chatsim.Conversation{Chat: webConversations[0].Chat, Topic: fmt.Sprintf("#p%d", i)})
		}
		return all
	}
	return slices.DeleteFunc(g.previewChats(daemon), func(c chatsim.Conversation) bool { return c.NeedsMention })
}

// previewChats are the tracked conversations of an adapter's platform in which users change no messages.
func (g *generator) previewChats(daemon string) (all []chatsim.Conversation) {
	for _, p := range g.platforms {
		if p.Info().Daemon == daemon {
			all = append(all, p.Conversations()...)
		}
	}
	return slices.DeleteFunc(all, func(c chatsim.Conversation) bool { return c.Mutates })
}

// maxText is a length in bytes that every platform accepts from users. The answer takes more than
// one part.
const maxText = 1980

// mutate pins, stops, edits, deletes, reacts to a message or resets the session.
func (g *generator) mutate(ctx context.Context) {
	a := chatsim.Action{Conversation: g.mutating[g.random.IntN(len(g.mutating))], Verb: msg.VerbMessage}
	switch n := g.random.IntN(14); {
	case n < 5:
		a.Text = g.text()
	case n < 7:
		a.Text = []string{"#pinned", "#", "@eng", "@"}[g.random.IntN(4)]
	case n == 7 && g.random.IntN(2) == 0:
		g.written++
		if g.pressStop(a.Conversation) {
			return
		}
		a.Text = "work stream slow 9 " + g.plainText() // so that there is a button next time
	case n == 7:
		a.Text = msg.CommandIn(a.Chat, "stop")
	case n == 8:
		a.Text = msg.CommandIn(a.Chat, "new #task "+g.text())
	case n < 11:
		a.Verb, a.Text = msg.VerbEdit, g.text()
	case n == 11:
		a.Verb = msg.VerbDelete
	default:
		a.Verb, a.Text = msg.VerbReaction, "👍"
	}

	if a.Verb == msg.VerbMessage {
		g.lastMessage[a.Conversation] = g.perform(ctx, a)
	} else if a.Target = g.lastMessage[a.Conversation]; a.Target != "" {
		g.perform(ctx, a)
	}
	if a.Verb == msg.VerbDelete {
		delete(g.lastMessage, a.Conversation)
	}
	g.written++
}

// allAcknowledged reports whether every message was acknowledged by dashd or its adapter.
func (g *generator) allAcknowledged() bool {
	for _, s := range g.web {
		if !s.idle() {
			return false
		}
	}
	for _, p := range g.platforms {
		if !p.AllAcknowledged() {
			return false
		}
	}
	return true
}
