package page

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
)

func TestPage_Conversation(t *testing.T) {
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			team := "chat=" + s.team
			shown := "@" + strings.TrimPrefix(s.offered(), "@")
			s.shows(s.get(team), " · fake "+name+"</title>", "No messages yet", `data-name="`+shown+` "`, `aria-current="true">Alice</a>`, ">Bob</a>")
			_, page := s.send(nil, "chat", s.team, "text", shown+" <b>hi</b>\r\nthere")
			s.shows(page, shown+" &lt;b&gt;hi&lt;/b&gt;\nthere", `class="mine"`, ">Reply</a>", ">Edit</a>")
			if m := s.said(0); !strings.HasPrefix(m.text, s.mention) || m.by != "Alice" {
				t.Errorf("the chat has %+v", m)
			}
			if s.typing != nil {
				s.typing()
				s.shows(s.get(team), " is typing…")
			}
			s.reply("hello yourself")
			s.react()
			s.shows(s.get(team), "hello yourself", `class=" bot"`, s.emoji, "!is typing…")

			first := s.id(0)
			s.shows(s.get(team+"&as="+s.bob+"&reply="+first), "replying to “Alice: "+shown, "!>Edit</a>")
			_, page = s.send([]byte("read me"), "chat", s.team, "as", s.bob, "reply", first, "text", "see")
			s.shows(page, `aria-current="true">Bob</a>`)
			if m := s.said(2); m != (said{"see", "Bob", 1, true}) {
				t.Errorf("sent %+v", m)
			}
			s.shows(s.get(team+"&edit="+first), "&lt;b&gt;hi&lt;/b&gt;\nthere</textarea>")
			_, page = s.send(nil, "chat", s.team, "edit", first, "text", "better")
			s.shows(page, "better", "</time> edited")
			_, page = s.post("/react", "chat", s.team, "message", s.id(1), "emoji", "🔥")
			s.shows(page, `<p class="reactions">🔥 </p>`)
			_, page = s.post("/react", "chat", s.team, "message", s.id(1), "emoji", "")
			s.shows(page, `!<p class="reactions">🔥`)
			if _, page = s.send(nil, "chat", s.team, "text", ""); strings.Count(page, "<article") > 3 {
				t.Error("an empty message was sent")
			}
		})
	}
}

func TestPage_Threads(t *testing.T) {
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			chat, topic, _ := strings.Cut(strings.TrimPrefix(s.threads, "chat="), "&topic=")
			s.send(nil, "chat", chat, "topic", topic, "text", "ship it")
			s.shows(s.get(s.threads), "ship it", `aria-current="page">#`, "#incidents")
			s.shows(s.get(s.beside), "!ship it")
		})
	}
}

func TestPage_Button_IsPressed(t *testing.T) {
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			s.send(nil, "chat", s.team, "text", "Sure?")
			s.reply("hello")
			s.offer(true)
			s.shows(s.get("chat="+s.team), `<button name="button" value="stop:7">Stop</button>`)
			if status, _ := s.post("/press", "chat", s.team, "message", s.id(1), "button", "none"); status != http.StatusBadRequest {
				t.Errorf("a button that is not there: %d", status)
			}
			_, page := s.post("/press", "chat", s.team, "message", s.id(1), "button", "stop:7")
			s.shows(page, "!sees this")
			s.answer("Already finished.")
			s.shows(s.get("chat="+s.team), "Already finished.", "sees this")
			s.offer(false)
			s.shows(s.get("chat="+s.team), "!Stop</button>")
		})
	}
}

func TestPage_RefusesInvalidForms(t *testing.T) {
	for name, start := range sites() {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for _, path := range []string{"/?chat=1", "/files/nonsense"} {
				if status, _, _ := s.do("GET", path, nil); status != http.StatusNotFound {
					t.Errorf("%s: %d", path, status)
				}
			}
			for _, fields := range [][]string{{"chat", "1"}, {"chat", s.team, "reply", "99"}, {"chat", s.team, "edit", "99"}, {"chat", s.team, "topic", "7"},
				{"chat", s.team, "topic", "7", "edit", "7"}} {
				if status, _ := s.send(nil, append(fields, "text", "x")...); status < 400 || status >= 500 {
					t.Errorf("%v: %d", fields, status)
				}
			}
			if status, _ := s.post("/react", "chat", s.team, "topic", "7", "message", "7", "emoji", "🔥"); status != http.StatusBadRequest {
				t.Errorf("a reaction in no thread: %d", status)
			}
			for _, form := range []string{"multipart/form-data; boundary=x", "text/plain"} {
				if status, _, _ := s.do("POST", "/send", strings.NewReader("nonsense"), "Content-Type", form); status != http.StatusBadRequest {
					t.Errorf("an invalid form: %d", status)
				}
			}
			for header, value := range map[string]string{"Origin": "https://evil.example", "Host": "evil.example"} {
				if status, _, _ := s.do("POST", "/send", strings.NewReader("chat="+s.team+"&text=x"), header, value); status != http.StatusForbidden {
					t.Errorf("%s %s: %d", header, value, status)
				}
			}
		})
	}
}

func TestDiscord_ThreadsAndNotes(t *testing.T) {
	s := newDiscord(t)
	chat := "chat=" + s.team
	s.send(nil, "chat", s.team, "text", "a topic")
	topic := s.id(0)
	s.shows(s.get(chat), "topic="+topic+`">Thread</a>`)
	s.shows(s.get(chat+"&topic="+topic), "#new thread")
	_, page := s.send(nil, "chat", s.team, "topic", topic, "text", "more on it")
	s.shows(page, "more on it", "started this thread", "#Thread of Alice")
	s.shows(s.get(s.beside), "started the thread deploys")
	s.shows(s.get("chat="+s.channel("questions").ChannelID), "#How does this work?", "Open the page as Alice", "!#channel")
	private := s.channel("Alice").ChannelID
	s.shows(s.get("chat="+private), ">Alice</a>", "!>Bob</a>")
	if status, _ := s.send(nil, "chat", private, "topic", "7", "text", "x"); status != http.StatusBadRequest {
		t.Errorf("a thread of a private channel: %d", status)
	}

	alice := s.general.Members()[0]
	s.general.Sticker(alice, "wave")
	poll := s.general.Poll(alice, "Lunch?", "yes", "no")
	s.general.Vote(alice, poll.ID, 2, true)
	s.general.EndPoll(poll.ID)
	s.general.Attach(alice, "", discord.File{Name: "a.png", Data: []byte("x")})
	s.reply("hi <@" + alice.ID + "> <@7>")
	s.shows(s.get(chat), "sticker wave", "poll: Lunch? · yes (0) · no (1)", "the poll has ended", `<img src="/files/`,
		"hi @Alice @unknown-user", "<blockquote>Alice: a topic")
}

// A bot's file never runs as a page of this origin.
func TestPage_Files(t *testing.T) {
	s := newDiscord(t)
	alice := s.general.Members()[0]
	picture := s.general.Attach(alice, "", discord.File{Name: "a.png", Data: []byte("\x89PNG\r\n\x1a\n")}).Attachments[0].ID
	script := s.general.Attach(alice, "", discord.File{Name: `a".html`, Data: []byte("<script>alert(1)</script>")}).Attachments[0].ID
	_, _, header := s.do("GET", "/files/"+picture, nil)
	if header.Get("Content-Type") != "image/png" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("a picture comes with %v", header)
	}
	_, _, header = s.do("GET", "/files/"+script, nil)
	if header.Get("Content-Type") != "application/octet-stream" || header.Get("Content-Disposition") != `attachment; filename="a\".html"` {
		t.Errorf("a page that was sent as a file comes with %v", header)
	}
}

func TestSlack_PanesAndCommands(t *testing.T) {
	s := newSlack(t)
	dm := s.place(slack.DM)
	pane := dm.Thread(dm.Messages()[0].TS)
	s.send(nil, "chat", dm.ChannelID, "topic", pane.ThreadTS, "text", "/me waves")
	if m := pane.Messages()[1]; m.Subtype != "me_message" || m.Text != "waves" {
		t.Errorf("sent %+v", m)
	}
	address := "chat=" + dm.ChannelID + "&topic=" + pane.ThreadTS
	s.bot("assistant.threads.setStatus", "channel_id", dm.ChannelID, "thread_ts", pane.ThreadTS, "status", "thinks")
	s.shows(s.get(address), "arizuko is typing…")
	s.bot("chat.postMessage", "channel", dm.ChannelID, "thread_ts", pane.ThreadTS, "text", "see <https://x.y|*here*> &amp; <#"+s.team+"|team>")
	s.shows(s.get(address), "!is typing…", "see *here* (https://x.y) &amp; #team")
	s.shows(s.get("chat="+dm.ChannelID), "replies in the thread: 2", "topic="+pane.ThreadTS+`">Thread</a>`, "!x.y")
	if status, _ := s.send(nil, "chat", dm.ChannelID, "topic", pane.ThreadTS, "text", "/arizuko new"); status != http.StatusBadRequest {
		t.Errorf("a command in a thread: %d", status)
	}
	if status, _ := s.send(nil, "chat", dm.ChannelID, "text", "/arizuko new"); status != http.StatusOK || s.sl.Undelivered() != 1 {
		t.Errorf("a command: %d, and %d were not delivered, without an adapter", status, s.sl.Undelivered())
	}
}

func TestTelegram_Topics(t *testing.T) {
	s := newTelegram(t)
	s.shows(s.get(""), "<title>Alice · fake Telegram</title>", "!>Bob</a>")
	chat, topic, _ := strings.Cut(strings.TrimPrefix(s.threads, "chat="), "&topic=")
	s.send(nil, "chat", chat, "topic", topic, "text", "ship it")
	s.send(nil, "chat", chat, "text", "in General")
	s.shows(s.get(s.threads), "!in General")
	s.shows(s.get("chat="+chat), "in General", "ship it", "· #deploys")
	s.bot("sendChatAction", "chat_id", chat, "message_thread_id", topic, "action", "typing")
	for where, isTyping := range map[string]bool{"": true, "&topic=" + topic: true, "&topic=1": false} {
		if page := s.get("chat=" + chat + where); strings.Contains(page, "is typing…") != isTyping {
			t.Errorf("at %q it types: %v, want %v", where, !isTyping, isTyping)
		}
	}
}

func TestPage_Events(t *testing.T) {
	s := newDiscord(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines, begin := bufio.NewScanner(resp.Body), time.Now()
	changed := func() {
		t.Helper()
		if !lines.Scan() || lines.Text() != "data: changed" || !lines.Scan() {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
	}
	changed() // at once
	s.general.Say(s.general.Members()[0], "x")
	changed()
	if waited := time.Since(begin); waited > 9*time.Second {
		t.Errorf("the change came after %v, as one does without news", waited)
	}
}

func TestCheckLocal(t *testing.T) {
	for addr, isLocal := range map[string]bool{
		"127.0.0.1:0": true, "localhost:80": true, "[::1]:80": true, "0.0.0.0:0": false, ":0": false, "example.org:80": false, "nonsense": false,
	} {
		if err := CheckLocal(addr); (err == nil) != isLocal {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

// offered is the mention of the bot that the page offers.
func (s *site) offered() string {
	_, rest, _ := strings.Cut(s.get("chat="+s.team), `data-name="`)
	name, _, _ := strings.Cut(rest, " ")
	return name
}

// id is the id of a message of the team's chat, as the page has it.
func (s *site) id(i int) string {
	s.t.Helper()
	parts := strings.Split(s.get("chat="+s.team), `id="m`)
	if len(parts) < i+3 {
		s.t.Fatalf("no message %d", i)
	}
	id, _, _ := strings.Cut(parts[i+2], `"`) // the first is id="messages"
	return id
}
