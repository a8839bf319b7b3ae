package proxy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"arizuko/gated/internal/egress/secrets"
	"arizuko/pkg/egress"
	"arizuko/pkg/groupconfig"
)

const (
	// maxRefresh bounds the request and the answer of a refresh, in bytes.
	maxRefresh     = 64 << 10
	refreshTimeout = time.Minute
	refreshField   = "refresh_token"
)

// secret is one that a request carries the token of.
type secret struct{ name, token, value string }

// credentials are the names of headers and of a query's parameters that hold credentials. A server may show others to
// users of its own: in api.test/send?text=… it would publish the secret, and metadata are stored.
var (
	credentials = regexp.MustCompile(`(?i)(auth|authorization|token|key|secret|passw(or)?d|passphrase|cookie|appid|` +
		`sig|signature|jwt|bearer|credentials?)$`)
	published = regexp.MustCompile(`(?i)idempotency|-meta-`)
)

var tokens = regexp.MustCompile(fmt.Sprintf("%s[a-z2-7]{%d}", secrets.TokenPrefix,
	secrets.TokenLength-len(secrets.TokenPrefix)))

// token stands for a secret in the agents of the run's group.
func (x *exchange) token(name string) string { return secrets.Token(x.p.Key, x.run.Folder, name) }

// findSecrets finds the tokens in a request, and refuses those that its host must not get.
func (x *exchange) findSecrets(r *http.Request) error {
	found, elsewhere := tokensOf(r)
	allowed := x.rules.Secrets(&x.query)
	if len(found) == 0 {
		return x.findRefresh(r, allowed)
	}
	names := map[string]string{}
	for _, rule := range x.rules {
		if rule.Action == egress.Inject {
			names[x.token(rule.Secret)] = rule.Secret
		}
	}
	var carried []string
	slices.Sort(found)
	for _, token := range slices.Compact(found) {
		switch name, known := names[token]; {
		case !known:
			return refuse("the request has a token, and no rule has a secret for it")
		case !slices.Contains(allowed, name):
			return refuse("the secret %s must not be sent to %s: no rule names it for this host", name, x.host)
		case !x.tls && (x.port == 80 || x.port == httpsPort):
			return refuse("the secret %s is not sent without TLS: use https://", name)
		case elsewhere != "":
			return refuse("the token of the secret %s is in %.80q, where no secret belongs", name, elsewhere)
		default:
			x.secrets = append(x.secrets, secret{name: name, token: token})
			carried = append(carried, name)
		}
	}
	x.receipt.Secret = strings.Join(carried, ",")
	return x.findRefresh(r, allowed)
}

// tokensOf are the tokens in the headers and the query of a request. elsewhere is the name of a part with one that is
// not for credentials, "" for none.
func tokensOf(r *http.Request) (found []string, elsewhere string) {
	find := func(name, value string) {
		all := tokens.FindAllString(value, -1)
		found = append(found, all...)
		if all != nil && (!credentials.MatchString(name) || published.MatchString(name)) {
			elsewhere = name
		}
	}
	for name, values := range r.Header {
		for _, value := range values {
			if user, ok := basic(value); ok {
				value = user
			}
			if name != "Proxy-Authorization" {
				find(name, value)
			}
		}
	}
	for pair := range strings.FieldsFuncSeq(r.URL.RawQuery, func(c rune) bool { return c == '&' || c == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		find(name, pair)
	}
	return found, elsewhere
}

// basic is the user and password of a header for Basic authentication.
func basic(value string) (user string, ok bool) {
	scheme, encoded, _ := strings.Cut(value, " ")
	if !strings.EqualFold(scheme, "Basic") {
		return "", false
	}
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	return string(decoded), err == nil
}

// loadSecrets reads the values of the secrets.
func (x *exchange) loadSecrets() error {
	for i := range x.secrets {
		s := &x.secrets[i]
		value, err := x.p.Secrets.Get(s.name)
		if err != nil {
			return &refusal{http.StatusBadGateway, fmt.Sprintf("the secret %s cannot be read: %v", s.name, err)}
		}
		if access, _, ok := parsePair(value); ok {
			value = access
		}
		s.value = value
	}
	return nil
}

// inject puts the secrets where their tokens are.
func (x *exchange) inject(out *http.Request) {
	if len(x.secrets) == 0 {
		return
	}
	for _, values := range out.Header {
		for i, value := range values {
			user, isBasic := basic(value)
			for _, s := range x.secrets {
				value, user = strings.ReplaceAll(value, s.token, s.value), strings.ReplaceAll(user, s.token, s.value)
			}
			if isBasic {
				coded := encodeBasic(user)
				x.coded = append(x.coded, replacement{coded[len("Basic "):], strings.TrimSpace(value[len("Basic "):])})
				value = coded
			}
			values[i] = value
		}
	}
	for _, s := range x.secrets {
		out.URL.RawQuery = strings.ReplaceAll(out.URL.RawQuery, s.token, url.QueryEscape(s.value))
	}
	out.Header.Set("Accept-Encoding", "identity") // the answer is searched for the secrets
	out.Header.Del("Sec-Websocket-Extensions")    // as compression is
	if strings.Contains(strings.ToLower(strings.Join(out.Header["Range"], "")), "bytes") {
		out.Header.Del("Range") // in pieces, the secrets would not be found
	}
}

func encodeBasic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user))
}

// refresh is a request that replaces both tokens of a secret that rotates.
type refresh struct {
	name, access, token string     // the tokens of the agent: in place of the access token, and of the refresh token
	form                url.Values // the body, or
	json                map[string]any
	pair                string // the secret
}

// parsePair reads a secret that rotates: a JSON object with access_token and refresh_token.
func parsePair(value string) (access, refresh string, ok bool) {
	var fields struct {
		Access  string `json:"access_token"`
		Refresh string `json:"refresh_token"`
	}
	err := json.Unmarshal([]byte(value), &fields)
	return fields.Access, fields.Refresh, err == nil && fields.Access != "" && fields.Refresh != ""
}

// findRefresh finds the token of a refresh token in the small body of a POST, as the field of that name and nowhere
// else: a server that got it in another field, as a model in a prompt, might give it to the agent in a form of its own.
func (x *exchange) findRefresh(r *http.Request, allowed []string) error {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	isForm := kind == "application/x-www-form-urlencoded"
	if len(allowed) == 0 || r.Method != http.MethodPost || r.ContentLength <= 0 ||
		r.ContentLength > maxRefresh || !x.tls || !isForm && kind != "application/json" {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return refuse("the body could not be read: %v", err)
	}
	setBody(r, body)
	var form url.Values
	var fields map[string]any
	if isForm {
		form, _ = url.ParseQuery(string(body))
	} else {
		_ = json.Unmarshal(body, &fields)
	}
	for _, name := range allowed {
		token := x.token(name + groupconfig.RefreshSuffix)
		inField := form.Get(refreshField) == token || fields[refreshField] == token
		if inField && bytes.Count(body, []byte(token)) == 1 {
			x.refresh = &refresh{name: name, access: x.token(name), token: token, form: form, json: fields}
			x.receipt.Secret = name
		}
	}
	return nil
}

// holdRefresh puts the refresh token into the request, which nothing else uses until release.
func (x *exchange) holdRefresh(r *http.Request) (release func(), err error) {
	f := x.refresh
	if f.pair, release, err = x.p.Secrets.Hold(f.name); err != nil {
		return nil, &refusal{http.StatusBadGateway, fmt.Sprintf("the secret %s cannot be refreshed: %v", f.name, err)}
	}
	access, token, ok := parsePair(f.pair)
	if !ok {
		release()
		return nil, &refusal{http.StatusBadGateway, "the secret " + f.name + " has no access_token and refresh_token"}
	}
	if f.form != nil {
		f.form.Set(refreshField, token)
		setBody(r, []byte(f.form.Encode()))
	} else {
		f.json[refreshField] = token
		body, _ := json.Marshal(f.json) // as it was read
		setBody(r, body)
	}
	x.secrets = append(x.secrets, secret{f.name, f.token, token}, secret{f.name, f.access, access})
	return release, nil
}

func inJSON(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals
	return string(quoted[1 : len(quoted)-1])
}

// finishRefresh stores the new tokens of an answer, and puts the agent's in their place.
func (x *exchange) finishRefresh(res *http.Response) error {
	f := x.refresh
	body, err := io.ReadAll(io.LimitReader(res.Body, maxRefresh+1))
	if err != nil || len(body) > maxRefresh {
		return errors.Join(errors.New("the answer with new tokens could not be read"), err)
	}
	var answer, stored map[string]json.RawMessage
	err = errors.Join(json.Unmarshal(body, &answer), json.Unmarshal([]byte(f.pair), &stored))
	for name, token := range map[string]string{"access_token": f.access, "refresh_token": f.token, "id_token": ""} {
		if value := ""; answer[name] != nil && json.Unmarshal(answer[name], &value) == nil && value != "" {
			if name == "id_token" { // some servers give a key for it; clients only read what it says
				token = value[:strings.LastIndexByte(value, '.')+1] + "signature"
			}
			x.secrets = append(x.secrets, secret{f.name, token, value})
			stored[name] = answer[name]
			answer[name], _ = json.Marshal(token)
		}
	}
	if err != nil {
		return errors.New("the answer has no new tokens")
	}
	content, err := json.Marshal(stored)
	if err == nil {
		err = x.p.Secrets.Set(f.name, string(content))
	}
	if err == nil {
		body, err = json.Marshal(answer)
	}
	if err != nil {
		return fmt.Errorf("store the new tokens of the secret %s: %w", f.name, err)
	}
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
