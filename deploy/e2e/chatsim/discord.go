package chatsim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/msg"
	"arizuko/pkg/render"
	"arizuko/pkg/testkit/fakes/discord"
)

// discordPort is the port of the fake Discord.
const discordPort = "9091"

// Discord is a Platform whose users write in DMs, channels and threads.
type Discord struct {
	*discord.Server
	bob   discord.User // writes in the guild
	guild discord.Guild
	other *discord.User // another bot, nil until needed
	all   []Conversation
	users map[string]discord.User // by JID
	chats map[string]Conversation // by Discord's id of the channel or thread
}

// NewDiscord creates a platform of a size. In some conversations users mutate messages; one has no
// child group.
func NewDiscord(size Size, o discord.Options) *Discord {
	d := &Discord{Server: discord.New(o), users: map[string]discord.User{}, chats: map[string]Conversation{}}
	d.bob = d.User("Bob", "bob")
	d.guild = d.Guild("Guild", d.bob)
	for i := range size.DMs {
		c := d.NewDM(fmt.Sprintf("Person %d", i))
		c.NoChildGroup, c.Mutates = i == 2, i >= size.DMs-2
		d.all = append(d.all, c)
	}
	for i := range size.Groups {
		c := d.NewGroup(fmt.Sprintf("channel-%d", i))
		c.Mutates = i == size.Groups-1
		d.all = append(d.all, c)
	}
	talk := d.guild.Channel("talk")
	for _, name := range []string{"left", "right"} {
		d.all = append(d.all, d.thread(talk, name))
	}
	return d
}

// NewDM implements ConversationMaker.
func (d *Discord) NewDM(name string) Conversation {
	u := d.User(name, strings.ToLower(name))
	id := d.DM(u).ChannelID
	return d.add(id, u, Conversation{Chat: "discord:dm-" + id})
}

// NewGroup implements ConversationMaker.
func (d *Discord) NewGroup(title string) Conversation { return d.channel(d.guild, title) }

// NewThread implements ConversationMaker.
func (d *Discord) NewThread(title string) Conversation {
	return d.thread(d.guild.Channel("about-"+title), title)
}

func (d *Discord) channel(in discord.Guild, name string) Conversation {
	id := in.Channel(name).ChannelID
	return d.add(id, d.bob, Conversation{Chat: "discord:" + id, NeedsMention: true})
}

func (d *Discord) thread(of discord.Place, name string) Conversation {
	id := of.Thread(d.bob, name).ChannelID
	return d.add(id, d.bob, Conversation{Chat: "discord:" + of.ChannelID, Thread: id, NeedsMention: true})
}

func (d *Discord) add(id string, user discord.User, c Conversation) Conversation {
	d.users[c.Chat], d.chats[id] = user, c
	return c
}

// at returns the fake's own place of a conversation.
func (d *Discord) at(c Conversation) discord.Place {
	_, channel := msg.SplitJID(c.Chat)
	return d.Place(cmp.Or(c.Thread, strings.TrimPrefix(channel, "dm-")))
}

// Serve implements Transport.
func (d *Discord) Serve(host string) (env []string, err error) {
	base, err := d.Start(listenOn(host, discordPort))
	return []string{"DISCORD_BOT_TOKEN=" + d.Token(), "DISCORD_API_URL=" + base}, err
}

// Info implements Platform.
func (d *Discord) Info() Info {
	return Info{
		Daemon: "discd", Platform: "discord", DMPattern: "dm-*",
		Split: func(content string) []string {
			return render.Discord(content, 2000-markRoom) // characters, as the API allows
		},
		TokenEnv: "DISCORD_BOT_TOKEN", Surfaces: Surfaces{DM: "discord-dm", Group: "discord-channel",
			Thread: "discord-thread"},
		LinksReplies: true, FindsMessages: true, ReportsDeletions: true,
	}
}

// Conversations implements Users.
func (d *Discord) Conversations() []Conversation { return d.all }

// Do implements Users.
func (d *Discord) Do(a Action) (id string, err error) {
	user, in, draft := d.users[a.Chat], d.at(a.Conversation), discord.Draft{Text: a.Text}
	if a.Bot {
		user = d.otherBot()
	}
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(a.Target)
		return "", nil
	case msg.VerbEdit:
		_, err = in.TryEdit(user, a.Target, a.Text)
		return "", err
	case msg.VerbReaction:
		_ = in.SetReaction(user, a.Target, a.Text, true) // fails if it is set already
		return "", nil
	case msg.VerbReply:
		draft.ReplyTo = a.Target
	case msg.VerbMention:
		draft.Text = d.Me().Mention() + " " + a.Text
	}
	if a.File != nil {
		draft.Files = []discord.File{{Name: a.File.Name, Data: a.File.Data}}
		if a.File.Voice {
			draft.Files[0].Name, draft.Files[0].MIME, draft.Files[0].Voice = "voice-message.ogg", "audio/ogg", true
		}
	}
	m, err := in.Post(user, draft)
	return m.ID, err
}

func (d *Discord) otherBot() discord.User {
	if d.other == nil {
		bot := d.OtherBot("Other", "other")
		d.guild.Join(bot)
		d.other = &bot
	}
	return *d.other
}

// Vote implements Users.
func (d *Discord) Vote(c Conversation, poll string, option int) error {
	d.at(c).Vote(d.users[c.Chat], poll, option, true)
	return nil
}

// message is a message of a conversation, with an error if there is none.
func (d *Discord) message(c Conversation, id string) (discord.Message, error) {
	for _, m := range d.at(c).Messages() {
		if m.ID == id {
			return m, nil
		}
	}
	return discord.Message{}, fmt.Errorf("no message %s in %s", id, c.Chat)
}

// Buttons implements Presser.
func (d *Discord) Buttons(c Conversation, message string) (labels []string, text string) {
	m, _ := d.message(c, message) // none has no buttons
	labels, _, _ = sorted(m.Buttons(), "")
	return labels, m.Content
}

// Press implements Presser.
func (d *Discord) Press(c Conversation, message, label string, other bool) (press string, err error) {
	by := d.users[c.Chat]
	if other {
		by = d.User("Eve", "eve")
		d.guild.Join(by)
	}
	m, err := d.message(c, message)
	if err != nil {
		return "", err
	}
	_, data, err := sorted(m.Buttons(), label)
	if err != nil {
		return "", err
	}
	given, err := d.at(c).TryPress(by, message, data)
	return given.ID + " " + given.Token, err
}

// Stoppable implements Presser.
func (d *Discord) Stoppable(c Conversation) (messages []string) {
	for _, m := range d.at(c).Messages() {
		if hasStop(m.Buttons()) {
			messages = append(messages, m.ID)
		}
	}
	return messages
}

// BotReactions implements Reactor.
func (d *Discord) BotReactions(c Conversation, message string) []string {
	return d.at(c).Reactions(message)[d.Me().ID]
}

// ForbidReactions implements Reactor.
func (d *Discord) ForbidReactions(c Conversation) { d.at(c).Deny(discord.AddReactions) }

// PressAnswer implements Presser.
func (d *Discord) PressAnswer(_ Conversation, press string) (text string, ok bool) {
	id, token, _ := strings.Cut(press, " ")
	return d.Server.PressAnswer(discord.Interaction{ID: id, Token: token})
}

// AllAcknowledged implements Users. Discord has no acknowledgements.
func (d *Discord) AllAcknowledged() bool { return true }

// Connected implements Transport.
func (d *Discord) Connected() bool { return d.Listening() }

// Arrivals implements Transport.
func (d *Discord) Arrivals() []Arrival { return d.shown().arrivals() }

// LeftPreviews implements Transport.
func (d *Discord) LeftPreviews() []Arrival { return d.shown().leftPreviews() }

func (d *Discord) shown() *shown {
	all := &shown{}
	for _, call := range d.Sent() {
		conversation, known := d.conversation(call.ChannelID)
		switch {
		case !known:
		case call.Route == discord.EditMessage:
			all.changed(conversation.Chat, call.MessageID, call.Text, call.At)
		case call.Route == discord.DeleteMessage:
			all.deleted(conversation.Chat, call.MessageID)
		case call.Route == discord.CreateMessage && !call.Repeated:
			a := Arrival{ID: call.MessageID, Chat: conversation.Chat, Thread: conversation.Thread, Text: call.Text,
				ReplyTo: call.ReplyTo, At: call.At}
			if call.Message != nil && call.Message.Poll != nil {
				a.Text = call.Message.Poll.Question.Text
			}
			for _, f := range call.Files {
				a.Files = append(a.Files, File{Name: f.Name, Data: f.Data})
			}
			all.made(a)
		}
	}
	return all
}

// conversation is that of a channel or thread; the bot may have made the thread.
func (d *Discord) conversation(id string) (c Conversation, known bool) {
	if c, known = d.chats[id]; known {
		return c, true
	}
	for channel, c := range d.chats {
		for _, thread := range d.Place(channel).Threads() {
			if thread.ID == id {
				c.Thread = id
				return c, true
			}
		}
	}
	return Conversation{}, false
}

// ShowsWorking implements Transport.
func (d *Discord) ShowsWorking(c Conversation) bool { return len(d.at(c).Typing()) > 0 }

// RateLimited implements Transport.
func (d *Discord) RateLimited() (n int) {
	for _, c := range d.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// InjectRandomFault implements FaultInjector.
func (d *Discord) InjectRandomFault(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	faults := []discord.Fault{
		{Route: discord.CreateMessage, Status: 502, After: true},
		{Route: discord.CreateMessage, Status: 500},
		{Route: discord.CreateMessage, RetryAfter: time.Duration(n) * time.Second},
		{Route: discord.CreateMessage, Drop: true},
		{Route: discord.CreateMessage, Drop: true, After: true},
		{Route: discord.CreateMessage, Body: "<html>gateway</html>", After: true},
		{Route: discord.EditMessage, Status: 502, After: true},
		{Route: discord.EditMessage, Status: 500},
		{Route: discord.EditMessage, RetryAfter: time.Duration(n) * time.Second},
		{Route: discord.EditMessage, Drop: true},
		{Route: discord.EditMessage, Drop: true, After: true},
		{Route: discord.EditMessage, Delay: slowEdit},
		{Route: discord.DeleteMessage, Status: 503},
		{Route: discord.DeleteMessage, Drop: true, After: true},
		{Route: discord.DeleteMessage, RetryAfter: time.Duration(n) * time.Second},
		{Route: discord.GetMessages, Status: 503},
		{Route: discord.Connect, Drop: true},
		{Route: discord.Download, Status: 503},
		{Delay: time.Second},
	}
	others := []struct {
		name string
		do   func()
	}{
		{"duplicate events", func() { d.DuplicateNext(5 * n) }},
		{"reordered events", func() { d.ReverseNext(1 + n) }},
		{"redelivered events", func() { d.Redeliver(5 * n) }},
		{"malformed event", func() { d.Inject("MESSAGE_CREATE", `"not an object"`) }},
		{"malformed frame", func() { d.InjectFrame(`{"op":`) }},
		{"connections dropped", d.Disconnect},
		{"reconnect requested", d.RequestReconnect},
		{"sessions invalidated", func() { d.InvalidateSessions(random.IntN(2) == 0) }},
		{"sessions forgotten", d.ForgetSessions},
		{"connections hang", d.FreezeConnections},
	}
	i := random.IntN(len(faults) + len(others))
	if i < len(faults) {
		f := faults[i]
		f.Times = n
		d.InjectFault(f)
		return fmt.Sprintf("%s ×%d: %s", cmp.Or(f.Route, "any call"), n,
			faultName(f.Drop, f.Body != "", f.After, f.RetryAfter > 0, f.Status))
	}
	other := others[i-len(faults)]
	other.do()
	return other.name
}

// SetListening implements Network.
func (d *Discord) SetListening(ok bool) error { return setListening(d, ok) }

// DropConnections implements Network.
func (d *Discord) DropConnections() { d.Disconnect() }

// DuplicateAndReorder implements FaultInjector.
func (d *Discord) DuplicateAndReorder(n int) {
	d.DuplicateNext(n)
	d.ReverseNext(n)
	d.Redeliver(n)
}

// FailNextSend implements FaultInjector.
func (d *Discord) FailNextSend(f Fault) {
	d.InjectFault(discord.Fault{
		Route: discord.CreateMessage, Status: f.Status, RetryAfter: f.RetryAfter, Drop: f.Drop, After: f.After,
	})
}

// RefuseButtons implements Presser.
func (d *Discord) RefuseButtons() {
	const body = `{"message":"Invalid Form Body","code":50035,"errors":{"components":{"0":{"components":{"0":{"label":` +
		`{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 80 in length."}]}}}}}}}`
	d.InjectFault(discord.Fault{Route: discord.CreateMessage, Status: http.StatusBadRequest, Body: body})
}

// RefuseEdits implements FaultInjector.
func (d *Discord) RefuseEdits() {
	d.InjectFault(discord.Fault{Route: discord.EditMessage, RetryAfter: time.Second, Times: -1})
}

// SetTokenValid implements FaultInjector.
func (d *Discord) SetTokenValid(ok bool) { d.Revoke(!ok) }

// Removals implements FaultInjector.
func (d *Discord) Removals() []Removal {
	abroad := d.Guild("Abroad", d.bob)
	blocked, muted, deleted, kicked, locked := d.NewDM("Ann"), d.NewGroup("muted"), d.NewGroup("deleted"),
		d.channel(abroad, "kicked"), d.NewThread("locked")
	return []Removal{
		{Name: "the bot is blocked", Conversation: blocked, Apply: func() { d.Block(d.users[blocked.Chat], true) }},
		{Name: "the bot loses its permission to write", Conversation: muted,
			Apply: func() { d.at(muted).Deny(discord.SendMessages) }},
		{Name: "a channel is deleted", Conversation: deleted, Apply: func() { d.at(deleted).DeleteChannel() }},
		{Name: "the bot is kicked", Conversation: kicked, Apply: abroad.RemoveBot},
		{Name: "a thread is locked", Conversation: locked, LeavesChat: true,
			Apply: func() { d.at(locked).Archive(true, true) }},
	}
}
