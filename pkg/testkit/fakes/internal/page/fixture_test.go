package page

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/slack"
	"arizuko/pkg/testkit/fakes/telegram"
)

func TestMain(m *testing.M) {
	// The browser's and the default client's connections close at their own pace.
	goleak.VerifyTestMain(m, goleak.Cleanup(func(int) { http.DefaultClient.CloseIdleConnections() }))
}

// site is a served page with the bot behind it. A request without an answer fails the test.
type site struct {
	t       *testing.T
	url     string
	client  *http.Client
	team    string // the id of a chat with Alice and Bob
	threads string // the query of a thread, and
	beside  string // the query of the view beside it
	mention string // of the bot, on the wire
	bob     string

	said   func(i int) said  // a message in the team's chat
	reply  func(text string) // the bot replies to the first message there
	edit   func(text string) // the bot edits that reply
	offer  func(on bool)     // the bot puts a button Stop below its reply, or takes it away
	answer func(text string) // the bot answers the press of that button to its user alone
	react  func()            // the bot reacts to the first message
	typing func()            // nil where a chat does not show it
	emoji  string            // the bot's reaction, as shown
}

// said is a message as the platform has it.
type said struct {
	text, by string
	files    int
	isReply  bool
}

func open(t *testing.T, handler http.Handler) *site {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &site{t: t, url: server.URL, client: server.Client()}
}

// sites are the pages of the platforms.
func sites() map[string]func(*testing.T) *site {
	return map[string]func(*testing.T) *site{
		"Discord":  func(t *testing.T) *site { return newDiscord(t).site },
		"Slack":    func(t *testing.T) *site { return newSlack(t).site },
		"Telegram": func(t *testing.T) *site { return newTelegram(t).site },
	}
}

type discordSite struct {
	*site
	dc      *discord.Server
	general discord.Place
}

// channel finds one of the ready-made channels, or the private one by its user.
func (s *discordSite) channel(name string) discord.Place {
	all := s.dc.Channels()
	i := slices.IndexFunc(all, func(ch discord.Channel) bool {
		return ch.Name == name || ch.Type == discord.Private && ch.Recipients[0].Name() == name
	})
	return s.dc.Place(all[i].ID)
}

func (s *discordSite) bot(method, path, body string) {
	s.t.Helper()
	status, answer, _ := s.do(method, "/api/v9"+path, strings.NewReader(body), "Authorization", "Bot "+s.dc.Token(),
		"Content-Type", "application/json")
	if status/100 != 2 {
		s.t.Fatalf("%s: %d %s", path, status, answer)
	}
}

func newDiscord(t *testing.T) *discordSite {
	dc := discord.New(discord.Options{})
	s := &discordSite{site: open(t, Discord(dc)), dc: dc}
	s.general = s.channel("general")
	operations := s.channel("operations")
	s.team, s.bob, s.mention, s.emoji = s.general.ChannelID, s.general.Members()[2].ID, dc.Me().Mention(), "🤝"
	s.beside = "chat=" + operations.ChannelID
	s.threads = s.beside + "&topic=" + operations.Threads()[0].ID
	at := func(i int) discord.Message { return s.general.Messages()[i] }
	path := "/channels/" + s.team
	s.said = func(i int) said {
		return said{at(i).Content, at(i).Author.Name(), len(at(i).Attachments), at(i).Reference != nil}
	}
	s.typing = func() { s.bot("POST", path+"/typing", "") }
	s.reply = func(text string) {
		s.bot("POST", path+"/messages", fmt.Sprintf(`{"content":%q,"message_reference":{"message_id":%q}}`, text, at(0).ID))
	}
	s.edit = func(text string) {
		s.bot("PATCH", path+"/messages/"+at(1).ID, fmt.Sprintf(`{"content":%q}`, text))
	}
	s.offer = func(on bool) {
		rows := `[]`
		if on {
			rows = `[{"type":1,"components":[{"type":2,"style":2,"label":"Stop","custom_id":"stop:7"}]}]`
		}
		s.bot("PATCH", path+"/messages/"+at(1).ID, `{"components":`+rows+`}`)
	}
	s.answer = func(text string) {
		i := dc.Interactions()[0]
		s.bot("POST", "/interactions/"+i.ID+"/"+i.Token+"/callback", fmt.Sprintf(`{"type":4,"data":{"content":%q,"flags":64}}`, text))
	}
	s.react = func() { s.bot("PUT", path+"/messages/"+at(0).ID+"/reactions/%F0%9F%A4%9D/@me", "") }
	return s
}

type slackSite struct {
	*site
	sl *slack.Server
}

// place finds one of the ready-made conversations by its kind.
func (s *slackSite) place(kind string) slack.Place {
	all := s.sl.Channels()
	return s.sl.Place(all[slices.IndexFunc(all, func(c slack.Channel) bool { return c.Kind == kind })].ID, "")
}

func (s *slackSite) bot(method string, fields ...string) {
	s.t.Helper()
	if _, body := s.post("/api/"+method, append(fields, "token", s.sl.BotToken())...); !strings.Contains(body, `"ok":true`) {
		s.t.Fatalf("%s: %s", method, body)
	}
}

func newSlack(t *testing.T) *slackSite {
	sl := slack.New(slack.Options{})
	s := &slackSite{site: open(t, Slack(sl)), sl: sl}
	team, private := s.place(slack.Public), s.place(slack.Private)
	members := team.Members()
	i := slices.IndexFunc(members, func(u slack.User) bool { return u.RealName == "Bob" })
	s.team, s.bob, s.mention, s.emoji = team.ChannelID, members[i].ID, sl.Me().Mention(), ":eyes:"
	s.beside = "chat=" + private.ChannelID
	s.threads = s.beside + "&topic=" + private.Say(members[i], "incidents").TS
	at := func(i int) slack.Message { return team.Messages()[i] }
	s.said = func(i int) said {
		u, _ := sl.UserByID(at(i).User)
		return said{at(i).Text, u.RealName, len(at(i).Files), at(i).ThreadTS != "" && at(i).ThreadTS != at(i).TS}
	}
	s.reply = func(text string) { s.bot("chat.postMessage", "channel", s.team, "text", text) }
	s.edit = func(text string) { s.bot("chat.update", "channel", s.team, "ts", at(1).TS, "text", text) }
	s.offer = func(on bool) {
		blocks := `[]`
		if on {
			blocks = `[{"type":"section","text":{"type":"mrkdwn","text":"hello, all of you"}},{"type":"actions","elements":[{
				"type":"button","action_id":"stop:7","value":"stop:7","text":{"type":"plain_text","text":"Stop"}}]}]`
		}
		s.bot("chat.update", "channel", s.team, "ts", at(1).TS, "text", "hello, all of you", "blocks", blocks)
	}
	s.answer = func(text string) {
		s.bot("chat.postEphemeral", "channel", s.team, "user", at(0).User, "text", text)
	}
	s.react = func() { s.bot("reactions.add", "channel", s.team, "timestamp", at(0).TS, "name", "eyes") }
	return s
}

type telegramSite struct {
	*site
	tg   *telegram.Server
	here telegram.Place
}

func (s *telegramSite) bot(method string, fields ...string) {
	s.t.Helper()
	if status, body := s.post("/bot"+s.tg.Token()+"/"+method, fields...); status != http.StatusOK {
		s.t.Fatalf("%s: %s", method, body)
	}
}

func newTelegram(t *testing.T) *telegramSite {
	tg := telegram.New(telegram.Options{PrivacyOff: true})
	s := &telegramSite{site: open(t, Telegram(tg)), tg: tg}
	id := func(title string) int64 {
		all := tg.Chats()
		return all[slices.IndexFunc(all, func(c telegram.Chat) bool { return c.Title+c.FirstName == title })].ID
	}
	s.here = tg.Place(id("Team"), 0)
	s.team, s.bob, s.mention, s.emoji = fmt.Sprint(s.here.ChatID), fmt.Sprint(id("Alice")+1), "@"+tg.Me().Username, "🤝"
	forum := tg.Place(id("Operations"), 0)
	s.threads = fmt.Sprintf("chat=%d&topic=%d", forum.ChatID, forum.Topics()[0].Thread)
	s.beside = fmt.Sprintf("chat=%d&topic=%d", forum.ChatID, forum.Topics()[1].Thread)
	at := func(i int) telegram.Message { return s.here.Messages()[i] }
	s.said = func(i int) said {
		m := at(i)
		files := 0
		if m.Document != nil {
			files = 1
		}
		return said{m.Text + m.Caption, m.From.FirstName, files, m.ReplyTo != nil}
	}
	s.typing = func() { s.bot("sendChatAction", "chat_id", s.team, "action", "typing") }
	s.reply = func(text string) {
		s.bot("sendMessage", "chat_id", s.team, "text", text, "reply_to_message_id", fmt.Sprint(at(0).ID))
	}
	s.edit = func(text string) {
		s.bot("editMessageText", "chat_id", s.team, "message_id", fmt.Sprint(at(1).ID), "text", text)
	}
	s.offer = func(on bool) {
		markup := ""
		if on {
			markup = `{"inline_keyboard":[[{"text":"Stop","callback_data":"stop:7"}]]}`
		}
		s.bot("editMessageText", "chat_id", s.team, "message_id", fmt.Sprint(at(1).ID), "text", "hello, all of you", "reply_markup", markup)
	}
	s.answer = func(text string) {
		s.bot("answerCallbackQuery", "callback_query_id", fmt.Sprintf("4382%012d", 1), "text", text)
	}
	s.react = func() {
		s.bot("setMessageReaction", "chat_id", s.team, "message_id", fmt.Sprint(at(0).ID), "reaction", `[{"type":"emoji","emoji":"🤝"}]`)
	}
	return s
}

// do sends a request with headers, given as name, value, name, value. Redirects are followed.
func (s *site) do(method, path string, body io.Reader, header ...string) (status int, answer string, got http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(all), resp.Header
}

// get loads the page of a query.
func (s *site) get(query string) string {
	s.t.Helper()
	status, page, _ := s.do(http.MethodGet, "/?"+query, nil)
	if status != http.StatusOK {
		s.t.Fatalf("%s: %d %s", query, status, page)
	}
	return page
}

// post sends a form without files, with fields as name, value, name, value.
func (s *site) post(path string, fields ...string) (status int, page string) {
	s.t.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	status, page, _ = s.do(http.MethodPost, path, strings.NewReader(form.Encode()), "Content-Type", "application/x-www-form-urlencoded")
	return status, page
}

// send sends the form for a message, with a file notes.txt unless that is nil.
func (s *site) send(file []byte, fields ...string) (status int, page string) {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for i := 0; i < len(fields); i += 2 {
		_ = form.WriteField(fields[i], fields[i+1]) // a buffer takes everything
	}
	if file != nil {
		part, err := form.CreateFormFile("file", "notes.txt")
		if err != nil {
			s.t.Fatal(err)
		}
		_, _ = part.Write(file)
	}
	_ = form.Close()
	status, page, _ = s.do(http.MethodPost, "/send", &body, "Content-Type", form.FormDataContentType())
	return status, page
}

// shows fails the test unless a page contains all of want; those with a ! in front it must not contain.
func (s *site) shows(page string, want ...string) {
	s.t.Helper()
	for _, w := range want {
		unwanted, not := strings.CutPrefix(w, "!")
		if strings.Contains(page, unwanted) == not {
			s.t.Errorf("%q: in the page %v\n%s", unwanted, not, page)
		}
	}
}
