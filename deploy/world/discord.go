package world

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"arizuko/pkg/fakeplatform/discord"
	"arizuko/pkg/msg"
	"arizuko/pkg/render"
)

// discordPort is where it is served.
const discordPort = "9091"

// Discord is a world whose people write in DMs, in channels and in threads.
type Discord struct {
	*discord.Server
	all []Place
	who map[string]discord.User // chat → who writes there
	// chats are the addresses of places, by Discord's own id of a channel or thread.
	chats map[string]Place
}

// NewDiscord makes one of a size. Some of the places are fussy, and one childless.
func NewDiscord(size Size, o discord.Options) *Discord {
	d := &Discord{Server: discord.New(o), who: map[string]discord.User{}, chats: map[string]Place{}}
	for i := range size.DMs {
		u := d.User(fmt.Sprintf("Person %d", i), fmt.Sprintf("person%d", i))
		id := d.DM(u).ChannelID
		d.add(id, u, Place{Chat: "discord:dm-" + id, Childless: i == 2, Fussy: i >= size.DMs-2})
	}
	u := d.User("Bob", "bob")
	guild := d.Guild("Guild", u)
	for i := range size.Groups {
		id := guild.Channel(fmt.Sprintf("channel-%d", i)).ChannelID
		d.add(id, u, Place{Chat: "discord:" + id, Calls: true, Fussy: i == size.Groups-1})
	}
	talk := guild.Channel("talk")
	for _, name := range []string{"left", "right"} {
		thread := talk.Thread(u, name)
		d.add(thread.ChannelID, u, Place{Chat: "discord:" + talk.ChannelID, Thread: thread.ChannelID, Calls: true})
	}
	return d
}

func (d *Discord) add(id string, who discord.User, p Place) {
	d.all, d.who[p.Chat], d.chats[id] = append(d.all, p), who, p
}

// Serve implements Wire.
func (d *Discord) Serve(host string) (env []string, err error) {
	base, err := d.Start(listenOn(host, discordPort))
	return []string{"DISCORD_BOT_TOKEN=" + d.Token(), "DISCORD_API_URL=" + base}, err
}

// About implements World.
func (d *Discord) About() About {
	return About{Daemon: "discd", Platform: "discord", DMs: "dm-*", Cut: func(content string) []string {
		return render.Discord(content, 2000) // characters, as the API allows
	}}
}

// Places implements People.
func (d *Discord) Places() []Place { return d.all }

// Do implements People.
func (d *Discord) Do(a Act) (id string, err error) {
	_, channel := msg.SplitJID(a.Chat)
	channel = strings.TrimPrefix(channel, "dm-")
	if a.Thread != "" {
		channel = a.Thread
	}
	who, in := d.who[a.Chat], d.Place(channel)
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
	case msg.VerbMention:
		a.Text = d.Me().Mention() + " " + a.Text
	}
	m, err := in.Post(who, discord.Draft{Text: a.Text})
	return m.ID, err
}

// Quiet implements People. Nothing on Discord is ever confirmed.
func (d *Discord) Quiet() bool { return true }

// Arrived implements Wire.
func (d *Discord) Arrived() (all []Arrival) {
	for _, c := range d.Sent() {
		if p, known := d.chats[c.ChannelID]; known && c.Route == discord.CreateMessage && !c.Repeated {
			all = append(all, Arrival{ID: c.MessageID, Chat: p.Chat, Thread: p.Thread, Text: c.Text, At: c.At})
		}
	}
	return all
}

// Hasty implements Wire.
func (d *Discord) Hasty() (n int) {
	for _, c := range d.Calls() {
		if c.Status == http.StatusTooManyRequests {
			n++
		}
	}
	return n
}

// Upset implements Wire.
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

// Away implements Wire.
func (d *Discord) Away(gone bool) {
	if gone {
		d.Unreachable()
	} else {
		d.Reachable()
	}
}
