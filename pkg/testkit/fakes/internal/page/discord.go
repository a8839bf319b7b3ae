package page

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
)

// onDiscord implements platform.
type onDiscord struct {
	*discord.Server
	users map[string]discord.User // those of the page and the bot, by id
}

// Discord serves the page of a fake Discord, with two users, a private channel, and a guild with channels, threads and
// a forum.
func Discord(dc *discord.Server) http.Handler {
	alice, bob := dc.User("Alice", "alice"), dc.User("Bob", "bob")
	dc.DM(alice)
	team := dc.Guild("Team", alice, bob)
	team.Channel("general")
	operations := team.Channel("operations")
	operations.Thread(alice, "deploys")
	operations.Thread(alice, "incidents")
	team.Forum("questions").OpenPost(alice, "How does this work?", "Open the page as Alice or as Bob, and write.")
	return serve(options{
		Platform: "Discord", Bot: dc.Me().Name(), Mention: "@" + dc.Me().Name(),
		Emoji: []string{"👍", "❤️", "🔥", "👎", "🤔"}, Typing: 10 * time.Second, // as documented
		isAPI: under("/api/", "/gateway", "/attachments/"),
	}, &onDiscord{dc, map[string]discord.User{alice.ID: alice, bob.ID: bob, dc.Me().ID: dc.Me()}}, dc)
}

func (p *onDiscord) chats() (all []chat) {
	for _, ch := range p.Channels() {
		c := chat{ID: ch.ID, Name: "#" + ch.Name, Whole: "channel"}
		for _, u := range p.Place(ch.ID).Members() {
			if _, known := p.users[u.ID]; known && !u.Bot {
				c.Users = append(c.Users, user{ID: u.ID, Name: u.Name()})
			}
		}
		for _, t := range p.Place(ch.ID).Threads() {
			c.Threads = append(c.Threads, thread{ID: t.ID, Name: t.Name})
		}
		switch ch.Type {
		case discord.Private:
			c.Name = ch.Recipients[0].Name()
		case discord.Forum:
			c.Whole = ""
		}
		all = append(all, c)
	}
	return all
}

// existing finds a place. The id of a thread may be that of a message from which one can be started.
func (p *onDiscord) existing(at place) (discord.Place, error) {
	if at.Thread == "" {
		return p.Place(at.Chat), nil
	}
	threads := p.Place(at.Chat).Threads()
	if !slices.ContainsFunc(threads, func(t discord.Channel) bool { return t.ID == at.Thread }) {
		return discord.Place{}, fmt.Errorf("no thread %s", at.Thread)
	}
	return p.Place(at.Thread), nil
}

func (p *onDiscord) messages(at place) (all []message) {
	here, err := p.existing(at)
	if err != nil {
		return nil
	}
	mayBranch := at.Thread == "" && slices.ContainsFunc(p.Channels(), func(ch discord.Channel) bool {
		return ch.ID == at.Chat && ch.Type == discord.Text
	})
	lines := map[string]message{}
	for _, m := range here.Messages() {
		l := p.line(here, m)
		if m.Type == discord.ReplyMessage {
			if of, found := lines[m.Reference.MessageID]; found {
				l.Answered = of.short()
			}
		}
		if mayBranch && m.Type != discord.ThreadCreated {
			l.Branch = m.ID
		}
		lines[m.ID] = l
		all = append(all, l)
	}
	for _, m := range here.Ephemeral() {
		l := p.line(here, m)
		l.Note = "only " + m.Interaction.User.Name() + " sees this"
		all = append(all, l)
	}
	return all
}

func (p *onDiscord) line(here discord.Place, m discord.Message) message {
	l := message{
		ID: m.ID, From: user{ID: m.Author.ID, Name: m.Author.Name(), Bot: m.Author.Bot}, Time: m.Timestamp,
		Text: p.readable(m.Content), Note: noteOnDiscord(m), Edited: m.EditedTimestamp != nil,
		Buttons: buttons(m.Buttons()),
	}
	if l.Note != "" {
		l.Text = ""
	}
	for _, a := range m.Attachments {
		l.attach(a.ID, a.Filename, a.ContentType, a.Size)
	}
	reactions := here.Reactions(m.ID)
	for _, by := range slices.Sorted(maps.Keys(reactions)) {
		l.Reactions = append(l.Reactions, reactions[by]...)
	}
	return l
}

// userMention matches a mention in content.
var userMention = regexp.MustCompile(`<@!?(\d+)>`)

// readable replaces ids by names.
func (p *onDiscord) readable(content string) string {
	return userMention.ReplaceAllStringFunc(content, func(mention string) string {
		return "@" + cmp.Or(p.users[userMention.FindStringSubmatch(mention)[1]].Name(), "unknown-user")
	})
}

// encode replaces names by mentions, as clients do.
func (p *onDiscord) encode(text string) string {
	for _, u := range p.users {
		text = strings.ReplaceAll(text, "@"+u.Name(), u.Mention())
	}
	return text
}

// noteOnDiscord describes a message without text.
func noteOnDiscord(m discord.Message) string {
	switch {
	case m.Type == discord.ThreadCreated:
		return "started the thread " + m.Content
	case m.Type == discord.ThreadStarter:
		return "started this thread with a message"
	case m.Type == discord.UserJoin:
		return "joined"
	case m.Type == discord.PollResultMessage:
		return "the poll has ended"
	case len(m.Stickers) > 0:
		return "sticker " + m.Stickers[0].Name
	case m.Poll != nil:
		votes := map[int]int{}
		for _, c := range m.Poll.Results.Counts {
			votes[c.ID] = c.Count
		}
		text := "poll: " + m.Poll.Question.Text
		for _, a := range m.Poll.Answers {
			text += fmt.Sprintf(" · %s (%d)", a.Media.Text, votes[a.ID])
		}
		return text
	}
	return ""
}

// post sends a message. It starts the thread if there is none yet.
func (p *onDiscord) post(at place, d draft) error {
	here, err := p.existing(at)
	by := p.users[at.As]
	if err != nil {
		if here, err = p.Place(at.Chat).TryThreadFrom(by, at.Thread, "Thread of "+by.Name()); err != nil {
			return err
		}
	}
	sent := discord.Draft{Text: p.encode(d.Text), ReplyTo: d.ReplyTo}
	if d.File != nil {
		sent.Files = []discord.File{{Name: d.File.Name, MIME: d.File.MIME, Data: d.File.Data}}
	}
	_, err = here.Post(by, sent)
	return err
}

func (p *onDiscord) edit(at place, id, text string) error {
	here, err := p.existing(at)
	if err == nil {
		_, err = here.TryEdit(p.users[at.As], id, p.encode(text))
	}
	return err
}

func (p *onDiscord) react(at place, id, emoji string) error {
	here, err := p.existing(at)
	if err != nil {
		return err
	}
	by := p.users[at.As]
	if emoji != "" {
		return here.SetReaction(by, id, emoji, true)
	}
	for _, old := range here.Reactions(id)[by.ID] {
		if err := here.SetReaction(by, id, old, false); err != nil {
			return err
		}
	}
	return nil
}

func (p *onDiscord) press(at place, id, data string) error {
	here, err := p.existing(at)
	if err == nil {
		_, err = here.TryPress(p.users[at.As], id, data)
	}
	return err
}

func (p *onDiscord) lastTyped(at place) time.Time {
	for _, c := range slices.Backward(p.Sent()) {
		if c.ChannelID == cmp.Or(at.Thread, at.Chat) {
			if c.Route == discord.TriggerTyping {
				return c.At
			}
			break
		}
	}
	return time.Time{}
}

func (p *onDiscord) file(id string) (file, bool) {
	name, _, data, found := p.FileByID(id)
	return file{Name: name, Data: data}, found
}
