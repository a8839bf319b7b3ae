package discord_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"arizuko/pkg/testkit/fakes/discord"
	"arizuko/pkg/testkit/fakes/internal/fakeservertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server, a plain HTTP client, and two users in a guild with the bot.
type fixture struct {
	*discord.Server
	t          *testing.T
	base       string
	client     *http.Client
	ctx        context.Context //nolint:containedctx // of one test
	alice, bob discord.User
	guild      discord.Guild
	general    discord.Place
}

func start(t *testing.T, o discord.Options) *fixture {
	t.Helper()
	s := discord.New(o)
	base, client, ctx := fakeservertest.Serve(t, s)
	r := &fixture{Server: s, t: t, base: base, client: client, ctx: ctx, alice: s.User("Alice", "alice"), bob: s.User("Bob", "bob")}
	r.guild = s.Guild("Team", r.alice, r.bob)
	r.general = r.guild.Channel("general")
	return r
}

// answer is an answer of the server. Status 0 is a broken connection.
type answer struct {
	Status int
	Header http.Header
	body   string
}

// json is the decoded body.
func (a answer) json() (fields map[string]any) {
	_ = json.Unmarshal([]byte(a.body), &fields) // a raw body is not JSON
	return fields
}

func (a answer) list() (all []map[string]any) {
	_ = json.Unmarshal([]byte(a.body), &all)
	return all
}

// ids are the ids of the objects in a list.
func ids(list []map[string]any) string {
	var all []string
	for _, o := range list {
		all = append(all, fmt.Sprint(o["id"]))
	}
	return strings.Join(all, " ")
}

// in is the list in a field of an answer.
func (a answer) in(field string) (list []map[string]any) {
	all, _ := a.json()[field].([]any) // none in another answer
	for _, o := range all {
		object, _ := o.(map[string]any)
		list = append(list, object)
	}
	return list
}

func (r *fixture) request(method, path string, body io.Reader, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, method, r.base+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bot "+r.Token())
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	got := fakeservertest.Do(r.t, r.client, req)
	return answer{Status: got.Status, Header: got.Header, body: got.Body}
}

// call sends JSON, or "" for none, to a path below the version.
func (r *fixture) call(method, path, body string) answer {
	r.t.Helper()
	return r.request(method, "/api/v9"+path, strings.NewReader(body), "Content-Type", "application/json")
}

// must is a call that must be accepted.
func (r *fixture) must(method, path, body string) answer {
	r.t.Helper()
	a := r.call(method, path, body)
	if a.Status != http.StatusOK && a.Status != http.StatusNoContent {
		r.t.Fatalf("%s %s: got %d %s, want it accepted", method, path, a.Status, a.body)
	}
	return a
}

// refuse is a call that must be refused with a status and a code of Discord.
func (r *fixture) refuse(status, code int, method, path, body string) answer {
	r.t.Helper()
	a := r.call(method, path, body)
	if got, _ := a.json()["code"].(float64); a.Status != status || int(got) != code {
		r.t.Errorf("%s %s %.80s: got %d %s, want %d with code %d", method, path, body, a.Status, a.body, status, code)
	}
	return a
}

// messages is the path of a place's messages.
func messages(p discord.Place) string { return "/channels/" + p.ChannelID + "/messages" }

// say sends a text of the bot and returns its id.
func (r *fixture) say(p discord.Place, text string) string {
	r.t.Helper()
	return r.must("POST", messages(p), content(text)).json()["id"].(string)
}

func content(text string) string {
	raw, _ := json.Marshal(map[string]string{"content": text})
	return string(raw)
}

// upload posts a message as a multipart form with files.
func (r *fixture) upload(p discord.Place, payload string, files ...[]byte) answer {
	r.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("payload_json", payload)
	for i, data := range files {
		part, err := form.CreateFormFile(fmt.Sprintf("files[%d]", i), fmt.Sprintf("file %d.txt", i))
		if err != nil {
			r.t.Fatal(err)
		}
		_, _ = part.Write(data)
	}
	_ = form.Close()
	return r.request("POST", "/api/v10"+messages(p), &body, "Content-Type", form.FormDataContentType())
}

// client is a client of the gateway.
type client struct {
	r    *fixture
	ws   *websocket.Conn
	zlib bool
	last int64 // sequence
	id   string
}

// event is a payload of the gateway.
type event struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
	S  *int64          `json:"s"`
	T  string          `json:"t"`
}

func (e event) fields() (fields map[string]any) {
	_ = json.Unmarshal(e.D, &fields)
	return fields
}

// dial connects and reads HELLO.
func (r *fixture) dial() *client {
	r.t.Helper()
	url := r.must("GET", "/gateway/bot", "").json()["url"].(string)
	ws, _, err := websocket.Dial(r.ctx, url+"/?v=9&encoding=json", &websocket.DialOptions{HTTPClient: r.client})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	ws.SetReadLimit(1 << 20)
	c := &client{r: r, ws: ws}
	c.op(10)
	return c
}

func (c *client) send(op int, d string) {
	c.r.t.Helper()
	if err := c.ws.Write(c.r.ctx, websocket.MessageText, fmt.Appendf(nil, `{"op":%d,"d":%s}`, op, d)); err != nil {
		c.r.t.Fatal(err)
	}
}

func (c *client) next() event {
	c.r.t.Helper()
	kind, body, err := c.ws.Read(c.r.ctx)
	if err != nil {
		c.r.t.Fatalf("the gateway: %v", err)
	}
	if c.zlib = kind == websocket.MessageBinary; c.zlib {
		body = inflated(c.r.t, body)
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		c.r.t.Fatalf("%v in %s", err, body)
	}
	if e.S != nil {
		c.last = *e.S
	}
	return e
}

// op reads the next payload, which must have an opcode.
func (c *client) op(want int) event {
	c.r.t.Helper()
	e := c.next()
	if e.Op != want {
		c.r.t.Fatalf("got op %d %s %s, want op %d", e.Op, e.T, e.D, want)
	}
	return e
}

// event reads the next payload, which must be an event.
func (c *client) event(name string) map[string]any {
	c.r.t.Helper()
	e := c.op(0)
	if e.T != name {
		c.r.t.Fatalf("got %s %s, want %s", e.T, e.D, name)
	}
	return e.fields()
}

// closes waits for the close of the connection, which must have a code.
func (c *client) closes(code int) {
	c.r.t.Helper()
	for {
		if _, body, err := c.ws.Read(c.r.ctx); err != nil {
			if got := int(websocket.CloseStatus(err)); got != code {
				c.r.t.Errorf("closed with %d (%v), want %d", got, err, code)
			}
			return
		} else if code == -1 {
			c.r.t.Fatalf("got %s, want a broken connection", body)
		}
	}
}

const allIntents = 1<<0 | 1<<1 | 1<<9 | 1<<10 | 1<<12 | 1<<13 | 1<<15 | 1<<24 | 1<<25

// listen connects, identifies, and reads READY and the guild.
func (r *fixture) listen(intents int) *client {
	r.t.Helper()
	c := r.dial()
	c.send(2, `{"token":"`+r.Token()+`","intents":`+strconv.Itoa(intents)+`,"properties":{}}`)
	c.id = c.event("READY")["session_id"].(string)
	if intents&1 != 0 {
		c.event("GUILD_CREATE")
	}
	return c
}

// again connects and resumes.
func (c *client) again() *client {
	c.r.t.Helper()
	fresh := c.r.dial()
	fresh.id = c.id
	fresh.send(6, fmt.Sprintf(`{"token":%q,"session_id":%q,"seq":%d}`, c.r.Token(), c.id, c.last))
	return fresh
}
