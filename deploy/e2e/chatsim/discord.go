package chatsim

import (
	"cmp"
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
	sim[discord.User]
	bob   discord.User // writes in the guild
	guild discord.Guild
	other *discord.User           // the other bot in the guild, nil until needed
	chats map[string]Conversation // by Discord's id of the channel or thread
}

// NewDiscord creates a platform of a size.
func NewDiscord(size Size, o discord.Options) *Discord {
	d := &Discord{Server: discord.New(o), chats: map[string]Conversation{}}
	d.sim = newSim[discord.User](d)
	d.bob = d.User("Bob", "bob")
	d.guild = d.Guild("Guild", d.bob)
	d.populate(size)
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

// Appoint implements ConversationMaker.
func (*Discord) Appoint(Conversation) {}

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
	base, err := d.serve(host, discordPort)
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

func (d *Discord) mention() string { return d.Me().Mention() }

func (d *Discord) post(user discord.User, a Action) (id string, err error) {
	draft := discord.Draft{Text: a.Text}
	if a.Verb == msg.VerbReply {
		draft.ReplyTo = a.Target
	}
	if a.File != nil {
		draft.Files = []discord.File{{Name: a.File.Name, Data: a.File.Data}}
		if a.File.Voice {
			draft.Files[0].Name, draft.Files[0].MIME, draft.Files[0].Voice = "voice-message.ogg", "audio/ogg", true
		}
	}
	m, err := d.at(a.Conversation).Post(user, draft)
	return m.ID, err
}

func (d *Discord) change(user discord.User, a Action) (err error) {
	in := d.at(a.Conversation)
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(a.Target)
	case msg.VerbEdit:
		_, err = in.TryEdit(user, a.Target, a.Text)
	case msg.VerbReaction:
		_ = in.SetReaction(user, a.Target, a.Text, true) // fails if it is set already
	}
	return err
}

func (d *Discord) bot(Conversation) discord.User {
	if d.other == nil {
		bot := d.OtherBot("Other", "other")
		d.guild.Join(bot)
		d.other = &bot
	}
	return *d.other
}

func (d *Discord) stranger(Conversation) discord.User {
	eve := d.User("Eve", "eve")
	d.guild.Join(eve)
	return eve
}

// Vote implements Users.
func (d *Discord) Vote(c Conversation, poll string, option int) error {
	d.at(c).Vote(d.users[c.Chat], poll, option, true)
	return nil
}

func (d *Discord) messages(c Conversation) (all []message) {
	for _, m := range d.at(c).Messages() {
		all = append(all, message{m.ID, m.Content, m.Buttons()})
	}
	return all
}

func (d *Discord) press(by discord.User, c Conversation, message, data string) (press string, err error) {
	given, err := d.at(c).TryPress(by, message, data)
	return given.ID + " " + given.Token, err
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

func (d *Discord) shown() *shown {
	all := &shown{}
	for _, call := range d.Sent() {
		conversation, known := d.conversation(call.ChannelID)
		switch {
		case !known:
		case call.Route == discord.EditMessage && call.Text == "": // of the buttons alone
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
	if c, known = d.chats[id]; known || id == "" { // calls about no channel: a look at all threads takes milliseconds
		return c, known
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
func (d *Discord) RateLimited() int {
	return limited(d.Calls(), func(c discord.Call) int { return c.Status })
}

func (d *Discord) calls() calls {
	return calls{send: discord.CreateMessage, edit: discord.EditMessage, remove: discord.DeleteMessage}
}

func (d *Discord) inject(f fault) {
	d.InjectFault(discord.Fault{Route: f.call, Times: f.times, After: f.after, Delay: f.delay, Drop: f.drop,
		Body: f.body, Status: f.status, RetryAfter: f.retryAfter})
}

func (d *Discord) faults(retryAfter time.Duration) []fault {
	return []fault{
		{call: discord.EditMessage, status: 500},
		{call: discord.DeleteMessage, status: 503},
		{call: discord.DeleteMessage, retryAfter: retryAfter},
		{call: discord.GetMessages, status: 503},
		{call: discord.Connect, drop: true},
		{call: discord.Download, status: 503},
	}
}

func (d *Discord) events(n int, random *rand.Rand) events {
	return events{
		duplicate: func() { d.DuplicateNext(n) },
		reorder:   func() { d.ReverseNext(1 + n) },
		redeliver: func() { d.Redeliver(n) },
		malformed: func() { d.Inject("MESSAGE_CREATE", `"not an object"`) },
		others: []disturbance{
			{"malformed frame", func() { d.InjectFrame(`{"op":`) }},
			{"connections dropped", d.Disconnect},
			{"reconnect requested", d.RequestReconnect},
			{"sessions invalidated", func() { d.InvalidateSessions(random.IntN(2) == 0) }},
			{"sessions forgotten", d.ForgetSessions},
			{"connections hang", d.FreezeConnections},
		},
	}
}

// RefuseButtons implements Presser.
func (d *Discord) RefuseButtons() {
	const body = `{"message":"Invalid Form Body","code":50035,"errors":{"components":{"0":{"components":{"0":{"label":` +
		`{"_errors":[{"code":"BASE_TYPE_BAD_LENGTH","message":"Must be between 1 and 80 in length."}]}}}}}}}`
	d.inject(fault{call: discord.CreateMessage, status: http.StatusBadRequest, body: body})
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
