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

// discordPort is where it is served.
const discordPort = "9091"

// Discord is a world whose people write in DMs, in channels and in threads.
type Discord struct {
	*discord.Server
	bob   discord.User // who writes in the guild
	guild discord.Guild
	other *discord.User // the other bot, nil until it is there
	all   []Place
	who   map[string]discord.User // chat → who writes there
	// chats are the addresses of places, by Discord's own id of a channel or thread.
	chats map[string]Place
}

// NewDiscord makes one of a size. Some of the places are fussy, and one childless.
func NewDiscord(size Size, o discord.Options) *Discord {
	d := &Discord{Server: discord.New(o), who: map[string]discord.User{}, chats: map[string]Place{}}
	d.bob = d.User("Bob", "bob")
	d.guild = d.Guild("Guild", d.bob)
	for i := range size.DMs {
		p := d.NewDM(fmt.Sprintf("Person %d", i))
		p.Childless, p.Fussy = i == 2, i >= size.DMs-2
		d.all = append(d.all, p)
	}
	for i := range size.Groups {
		p := d.NewGroup(fmt.Sprintf("channel-%d", i))
		p.Fussy = i == size.Groups-1
		d.all = append(d.all, p)
	}
	talk := d.guild.Channel("talk")
	for _, name := range []string{"left", "right"} {
		d.all = append(d.all, d.thread(talk, name))
	}
	return d
}

// NewDM implements Rooms.
func (d *Discord) NewDM(name string) Place {
	u := d.User(name, strings.ToLower(name))
	id := d.DM(u).ChannelID
	return d.add(id, u, Place{Chat: "discord:dm-" + id})
}

// NewGroup implements Rooms.
func (d *Discord) NewGroup(title string) Place { return d.channel(d.guild, title) }

// NewThread implements Rooms.
func (d *Discord) NewThread(title string) Place {
	return d.thread(d.guild.Channel("about-"+title), title)
}

func (d *Discord) channel(in discord.Guild, name string) Place {
	id := in.Channel(name).ChannelID
	return d.add(id, d.bob, Place{Chat: "discord:" + id, Calls: true})
}

func (d *Discord) thread(of discord.Place, name string) Place {
	id := of.Thread(d.bob, name).ChannelID
	return d.add(id, d.bob, Place{Chat: "discord:" + of.ChannelID, Thread: id, Calls: true})
}

func (d *Discord) add(id string, who discord.User, p Place) Place {
	d.who[p.Chat], d.chats[id] = who, p
	return p
}

// at is where a place is on Discord.
func (d *Discord) at(p Place) discord.Place {
	_, channel := msg.SplitJID(p.Chat)
	return d.Place(cmp.Or(p.Thread, strings.TrimPrefix(channel, "dm-")))
}

// Serve implements Wire.
func (d *Discord) Serve(host string) (env []string, err error) {
	base, err := d.Start(listenOn(host, discordPort))
	return []string{"DISCORD_BOT_TOKEN=" + d.Token(), "DISCORD_API_URL=" + base}, err
}

// About implements World.
func (d *Discord) About() About {
	return About{
		Daemon: "discd", Platform: "discord", DMs: "dm-*",
		Cut: func(content string) []string {
			return render.Discord(content, 2000) // characters, as the API allows
		},
		Token: "DISCORD_BOT_TOKEN", Surfaces: Surfaces{DM: "discord-dm", Group: "discord-channel", Thread: "discord-thread"},
		Replies: true, Finds: true, Deletions: true,
	}
}

// Places implements People.
func (d *Discord) Places() []Place { return d.all }

// Do implements People.
func (d *Discord) Do(a Act) (id string, err error) {
	who, in, draft := d.who[a.Chat], d.at(a.Place), discord.Draft{Text: a.Text}
	if a.Bot {
		who = d.otherBot()
	}
	switch a.Verb {
	case msg.VerbDelete:
		in.Delete(a.Target)
		return "", nil
	case msg.VerbEdit:
		_, err = in.Revise(who, a.Target, a.Text)
		return "", err
	case msg.VerbReaction:
		_ = in.SetReaction(who, a.Target, a.Text, true) // once only
		return "", nil
	case msg.VerbReply:
		draft.ReplyTo = a.Target
	case msg.VerbMention:
		draft.Text = d.Me().Mention() + " " + a.Text
	}
	if a.File != nil {
		draft.Files = []discord.File{{Name: a.File.Name, Data: a.File.Data}}
	}
	m, err := in.Post(who, draft)
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

// Quiet implements People. Nothing on Discord is ever confirmed.
func (d *Discord) Quiet() bool { return true }

// Arrived implements Wire.
func (d *Discord) Arrived() (all []Arrival) {
	for _, c := range d.Sent() {
		if p, known := d.chats[c.ChannelID]; known && c.Route == discord.CreateMessage && !c.Repeated {
			a := Arrival{ID: c.MessageID, Chat: p.Chat, Thread: p.Thread, Text: c.Text, ReplyTo: c.ReplyTo, At: c.At}
			for _, f := range c.Files {
				a.Files = append(a.Files, File{f.Name, f.Data})
			}
			all = append(all, a)
		}
	}
	return all
}

// Typed implements Wire.
func (d *Discord) Typed(p Place) bool { return len(d.at(p).Typing()) > 0 }

// Hasty implements Wire.
func (d *Discord) Hasty() (n int) {
	for _, c := range d.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// Upset implements Trouble.
func (d *Discord) Upset(random *rand.Rand) string {
	n := 1 + random.IntN(3)
	faults := []discord.Fault{
		{Route: discord.CreateMessage, Status: 502, After: true},
		{Route: discord.CreateMessage, Status: 500},
		{Route: discord.CreateMessage, RetryAfter: time.Duration(n) * time.Second},
		{Route: discord.CreateMessage, Drop: true},
		{Route: discord.CreateMessage, Drop: true, After: true},
		{Route: discord.CreateMessage, Body: "<html>gateway</html>", After: true},
		{Route: discord.GetMessages, Status: 503},
		{Route: discord.Connect, Drop: true},
		{Delay: time.Second},
	}
	others := []struct {
		name string
		do   func()
	}{
		{"events come twice", func() { d.Twice(5 * n) }},
		{"events come in disorder", func() { d.Reversed(n) }},
		{"events come again", func() { d.Redeliver(5 * n) }},
		{"an event that nobody can read", func() { d.Inject("MESSAGE_CREATE", `"not an object"`) }},
		{"a frame that nobody can read", func() { d.Garble(`{"op":`) }},
		{"connections break", d.Disconnect},
		{"connections are to be made anew", d.AskReconnect},
		{"sessions end", func() { d.InvalidateSessions(random.IntN(2) == 0) }},
		{"sessions are forgotten", d.ForgetSessions},
		{"connections say nothing any more", d.Zombies},
	}
	i := random.IntN(len(faults) + len(others))
	if i < len(faults) {
		f := faults[i]
		f.Times = n
		d.Fail(f)
		return fmt.Sprintf("%s ×%d: %s", f.Route, n, faultName(f.Drop, f.Body != "", f.After, f.RetryAfter > 0, f.Status))
	}
	other := others[i-len(faults)]
	other.do()
	return other.name
}

// Away implements Trouble.
func (d *Discord) Away(gone bool) {
	if gone {
		d.Unreachable()
	} else {
		d.Reachable()
	}
}

// Break implements Trouble.
func (d *Discord) Break() { d.Disconnect() }

// Disorder implements Trouble.
func (d *Discord) Disorder(n int) {
	d.Twice(n)
	d.Reversed(n)
	d.Redeliver(n)
}

// Spoil implements Trouble.
func (d *Discord) Spoil(f Fault) {
	d.Fail(discord.Fault{
		Route: discord.CreateMessage, Status: f.Status, RetryAfter: f.RetryAfter, Drop: f.Drop, After: f.After,
	})
}

// Expire implements Trouble.
func (d *Discord) Expire(expired bool) { d.Revoke(expired) }

// Deaths implements Trouble.
func (d *Discord) Deaths() []Death {
	abroad := d.Guild("Abroad", d.bob)
	blocked, muted, deleted, kicked, locked := d.NewDM("Ann"), d.NewGroup("muted"), d.NewGroup("deleted"), d.channel(abroad, "kicked"), d.NewThread("locked")
	return []Death{
		{"the bot is blocked", blocked, func() { d.Block(d.who[blocked.Chat], true) }},
		{"the bot may not write any more", muted, func() { d.at(muted).Deny(discord.SendMessages) }},
		{"a channel is deleted", deleted, func() { d.at(deleted).DeleteChannel() }},
		{"the bot is kicked", kicked, abroad.RemoveBot},
		{"a thread is locked", locked, func() { d.at(locked).Archive(true, true) }},
	}
}
