package hooks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"arizuko/pkg/groupconfig"
	"arizuko/pkg/hooks"
	"arizuko/pkg/msg"
)

const (
	maxTitle   = 300  // characters of a line
	maxBody    = 2000 // characters of a text of the payload
	maxJSON    = 3000 // characters of a payload of an unknown event
	maxTopic   = 60   // of a topic's name
	maxCommits = 20   // of a push
)

// rendered is a delivery as an agent reads it.
type rendered struct {
	text   string
	topic  string // name of its topic, "" for the default one
	branch string // that it is about, "" for none
	login  string // who caused it, "" if that is not said
}

// shape says where the payload of an event has what a reader wants to know. Its texts contain paths into the payload,
// in braces. A text is left out if the payload lacks one of its paths; alternatives follow after a bar.
type shape struct{ title, link, body, topic, branch string }

// shapes are those of the events that are known, by kind and name.
var shapes = map[groupconfig.HookKind]map[string]shape{
	groupconfig.HookGitHub: {
		"issues": {"{action} issue {repository.full_name}#{issue.number}: {issue.title}", "{issue.html_url}",
			"{issue.body}", "{repository.full_name}-{issue.number}", ""},
		"issue_comment": {"comment {action} on {repository.full_name}#{issue.number}: {issue.title}",
			"{comment.html_url}", "{comment.body}", "{repository.full_name}-{issue.number}", ""},
		"pull_request": {"{action} pull request {repository.full_name}#{pull_request.number}: {pull_request.title}",
			"{pull_request.html_url}", "{pull_request.body}", githubPull, "{pull_request.base.ref}"},
		"pull_request_review": {"review {review.state} of {repository.full_name}#{pull_request.number}: " +
			"{pull_request.title}", "{review.html_url}", "{review.body}", githubPull, "{pull_request.base.ref}"},
		"pull_request_review_comment": {"comment {action} on {comment.path} of " +
			"{repository.full_name}#{pull_request.number}", "{comment.html_url}", "{comment.body}", githubPull,
			"{pull_request.base.ref}"},
		"push": {"push to {ref} of {repository.full_name}", "{compare}", "", "{repository.full_name}-{ref}", "{ref}"},
		"check_run": {"check {check_run.name} of {repository.full_name}: {check_run.conclusion|check_run.status}",
			"{check_run.html_url}", "{check_run.output.title}\n{check_run.output.summary}|{check_run.output.title}",
			"{repository.full_name}-{check_run.pull_requests.0.number|check_run.check_suite.head_branch}",
			"{check_run.check_suite.head_branch}"},
		"workflow_run": {"workflow {workflow_run.name} of {repository.full_name}: " +
			"{workflow_run.conclusion|workflow_run.status}", "{workflow_run.html_url}", "{workflow_run.display_title}",
			"{repository.full_name}-{workflow_run.pull_requests.0.number|workflow_run.head_branch}",
			"{workflow_run.head_branch}"},
		"release": {"{action} release {release.tag_name} of {repository.full_name}: {release.name}",
			"{release.html_url}", "{release.body}", "{repository.full_name}-{release.tag_name}", ""},
		"ping": {"the webhook works: {zen}", "", "", "", ""},
	},
	groupconfig.HookGitLab: {
		"issue": {"{object_attributes.action} issue {project.path_with_namespace}#{object_attributes.iid}: " +
			"{object_attributes.title}", "{object_attributes.url}", "{object_attributes.description}",
			"{project.path_with_namespace}-{object_attributes.iid}", ""},
		"merge_request": {"{object_attributes.action} merge request " +
			"{project.path_with_namespace}!{object_attributes.iid}: {object_attributes.title}",
			"{object_attributes.url}", "{object_attributes.description}",
			"{project.path_with_namespace}-mr{object_attributes.iid}", "{object_attributes.target_branch}"},
		"note": {"comment on {project.path_with_namespace}: {merge_request.title|issue.title|commit.title}",
			"{object_attributes.url}", "{object_attributes.note}",
			"{project.path_with_namespace}-mr{merge_request.iid}|" +
				"{project.path_with_namespace}-{issue.iid|commit.id}", ""},
		"push": {"push to {ref} of {project.path_with_namespace}", "{project.web_url}", "",
			"{project.path_with_namespace}-{ref}", "{ref}"},
		"pipeline": {"pipeline {object_attributes.id} of {project.path_with_namespace}: {object_attributes.status}",
			"{object_attributes.url}", "{commit.title}", "{project.path_with_namespace}-mr{merge_request.iid}|" +
				"{project.path_with_namespace}-{object_attributes.ref}", "{object_attributes.ref}"},
	},
	groupconfig.HookStripe: {
		"": {"{data.object.object} {data.object.id}", "", "{data.object.description}", "{data.object.id}", ""},
	},
}

const githubPull = "{repository.full_name}-{pull_request.number}"

// render makes a delivery readable.
func render(name string, h groupconfig.Hook, event string, payload any) rendered {
	known := shapes[h.Kind]
	base, _, _ := strings.Cut(event, ".")
	s, ok := known[base]
	if !ok {
		s, ok = known[""]
	}
	text := strings.TrimSuffix("Webhook "+name+": "+event, ": ")
	add := func(before, line string) {
		if line = oneLine(line); line != "" {
			text += "\n" + before + line
		}
	}
	r := rendered{login: fill("{sender.login|user.username|user_username}", payload)}
	if h.Kind == groupconfig.HookGitHub || h.Kind == groupconfig.HookGitLab {
		r.branch = strings.TrimPrefix(fill(s.branch, payload), "refs/heads/")
	}
	if r.topic = fill(s.topic, payload); h.Topic != "" {
		r.topic = h.Topic
	}
	r.topic = topicName(strings.ReplaceAll(r.topic, "refs/heads/", ""))
	if !ok {
		r.text = text + fenced(pretty(payload), maxJSON)
		return r
	}
	add("", fill(s.title, payload))
	if h.Kind == groupconfig.HookStripe {
		add("amount: ", amount(payload))
		add("status: ", fill("{data.object.status}", payload))
	}
	add("by ", r.login)
	add("", fill(s.link, payload))
	body := fill(s.body, payload)
	if base == "push" {
		body = commits(payload)
	}
	r.text = text + fenced(body, maxBody)
	return r
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// fill replaces the paths in a text by the payload's values. It returns the first alternative whose values are all
// there, "" if there is none.
func fill(text string, payload any) string {
	depth := 0
	for alternative := range strings.FieldsFuncSeq(text, func(c rune) bool { // bars outside of braces
		depth += strings.Count("{", string(c)) - strings.Count("}", string(c))
		return c == '|' && depth == 0
	}) {
		whole := true
		filled := placeholder.ReplaceAllStringFunc(alternative, func(paths string) string {
			for p := range strings.SplitSeq(paths[1:len(paths)-1], "|") {
				if value := hooks.Text(payload, p); value != "" {
					return value
				}
			}
			whole = false
			return ""
		})
		if whole {
			return filled
		}
	}
	return ""
}

// oneLine makes a text a line of its own, whatever is in it.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c) || unicode.Is(unicode.Cf, c)
	}), " ")
	return cut(text, maxTitle)
}

func cut(text string, limit int) string {
	if runes := []rune(text); len(runes) > limit {
		return fmt.Sprintf("%s… (%d of %d characters)", string(runes[:limit]), limit, len(runes))
	}
	return text
}

// fenced is a text as a block that nothing in it can end, "" for none.
func fenced(text string, limit int) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	shown, fence := cut(text, limit), "```"
	for strings.Contains(shown, fence) {
		fence += "`"
	}
	return "\n" + fence + "\n" + shown + "\n" + fence
}

func pretty(payload any) string {
	if text, ok := payload.(string); ok { // which was no JSON
		return text
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(payload) // it was decoded from JSON
	return b.String()
}

// commits lists those of a push, a line each.
func commits(payload any) (list string) {
	n := 0
	for ; n < maxCommits && hooks.Text(payload, fmt.Sprintf("commits.%d.id", n)) != ""; n++ {
		at := fmt.Sprintf("commits.%d.", n)
		id, message := hooks.Text(payload, at+"id"), hooks.Text(payload, at+"message")
		title, _, _ := strings.Cut(message, "\n")
		list += fmt.Sprintf("%.7s %s (%s)\n", id, cut(title, 100), hooks.Text(payload, at+"author.name"))
	}
	if n == maxCommits {
		list += "…\n"
	}
	return list
}

// wholeUnits are the currencies whose amounts Stripe gives in whole units, not in cents: https://docs.stripe.com/currencies#zero-decimal.
var wholeUnits = strings.Fields("bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf")

// amount is the amount of a Stripe object, as 12.50 EUR, "" for none.
func amount(payload any) string {
	number := fill("{data.object.amount|data.object.amount_total|data.object.amount_paid|data.object.amount_due}",
		payload)
	currency := hooks.Text(payload, "data.object.currency")
	digits := strings.TrimPrefix(number, "-")
	if number == "" || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	if !slices.Contains(wholeUnits, currency) {
		digits = fmt.Sprintf("%03s", digits)
		digits = digits[:len(digits)-2] + "." + digits[len(digits)-2:]
	}
	if number[0] == '-' {
		digits = "-" + digits
	}
	return digits + " " + strings.ToUpper(currency)
}

// topicName makes a text the name of a topic: of letters, digits, - and _. A longer one ends with a number of its own.
func topicName(text string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case c == '/':
			return '_'
		case c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			return c
		}
		return '-'
	}, strings.TrimPrefix(text, msg.TopicSigil))
	name = strings.TrimLeft(name, "-")
	if len(name) > maxTopic {
		sum := fnv.New32a()
		_, _ = sum.Write([]byte(text))
		name = fmt.Sprintf("%s-%08x", name[:maxTopic-9], sum.Sum32())
	}
	if msg.ReservedTopicName(name) {
		name += "-"
	}
	return name
}

// filtered says why a hook's settings leave a delivery to be read later, "" if it starts a turn.
func filtered(h groupconfig.Hook, event string, r rendered, payload any) string {
	base, _, _ := strings.Cut(event, ".")
	matches := func(patterns []string, names ...string) bool {
		return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
			return slices.ContainsFunc(names, func(name string) bool {
				ok, _ := path.Match(pattern, name)
				return ok
			})
		})
	}
	switch {
	case h.Kind == groupconfig.HookGitHub && base == "ping":
		return "it only says that the webhook works"
	case slices.ContainsFunc(h.Ignore, func(login string) bool { return strings.EqualFold(login, r.login) }):
		return fmt.Sprintf("ignore has %s, who caused it", r.login)
	case !matches(h.Events, base, event):
		return "events does not have " + event
	case r.branch != "" && !matches(h.Branches, r.branch):
		return "branches does not have " + r.branch
	}
	for _, p := range slices.Sorted(maps.Keys(h.Only)) {
		if got := hooks.Text(payload, p); got != h.Only[p] {
			return fmt.Sprintf("only wants %s to be %.100s, and it is %.100q", p, h.Only[p], got)
		}
	}
	return ""
}
