package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"arizuko/pkg/adapter/plaintext"
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

// shape says where the payloads of a kind have what a reader wants to know. Its texts contain paths into the payload,
// in braces, with a bar between alternatives. A text is left out if the payload lacks one of its paths; then the one
// after two bars takes its place. A payload without a title is shown as it is.
type shape struct{ title, link, body, topic, branch string }

var shapes = map[groupconfig.HookKind]shape{
	groupconfig.HookGitHub: {
		title: "{repository.full_name}#{issue.number|pull_request.number}: {issue.title|pull_request.title} || " +
			"{check_run.name|workflow_run.name} of {repository.full_name}: " +
			"{check_run.conclusion|check_run.status|workflow_run.conclusion|workflow_run.status} || " +
			"release {release.tag_name} of {repository.full_name}: {release.name|release.tag_name} || " +
			"push to {ref} of {repository.full_name} || the webhook works: {zen}",
		link: "{comment.html_url|review.html_url|issue.html_url|pull_request.html_url|check_run.html_url|" +
			"workflow_run.html_url|release.html_url|compare}",
		body: "{comment.path}: {comment.body} || {review.state}: {review.body} || {review.state} || " +
			"{check_run.output.title}\n{check_run.output.summary} || {comment.body|issue.body|pull_request.body|" +
			"check_run.output.title|workflow_run.display_title|release.body}",
		topic: "{repository.full_name}-{issue.number|pull_request.number|check_run.pull_requests.0.number|" +
			"workflow_run.pull_requests.0.number|check_run.check_suite.head_branch|workflow_run.head_branch|" +
			"release.tag_name|ref}",
		branch: "{pull_request.base.ref|check_run.check_suite.head_branch|workflow_run.head_branch|ref}",
	},
	groupconfig.HookGitLab: {
		title: "pipeline {object_attributes.id} of {project.path_with_namespace}: {object_attributes.status} || " +
			"{project.path_with_namespace} {object_attributes.iid|merge_request.iid|issue.iid}: " +
			"{object_attributes.title|merge_request.title|issue.title} || comment on " +
			"{project.path_with_namespace}: {commit.title} || push to {ref} of {project.path_with_namespace}",
		link: "{object_attributes.url|project.web_url}",
		body: "{object_attributes.note|object_attributes.description|commit.title}",
		topic: "{project.path_with_namespace}-merge_request-{merge_request.iid} || " +
			"{project.path_with_namespace}-issue-{issue.iid} || " +
			"{project.path_with_namespace}-{object_attributes.ref|ref|commit.id} || " +
			"{project.path_with_namespace}-{object_kind}-{object_attributes.iid}",
		branch: "{object_attributes.target_branch|object_attributes.ref|ref}",
	},
	groupconfig.HookStripe: {title: "{data.object.object} {data.object.id}", body: "{data.object.description}",
		topic: "{data.object.id}"},
}

// render makes a delivery readable. raw is the payload as it came.
func render(h *hooks.Found, event string, payload any, raw []byte) rendered {
	s := shapes[h.Kind]
	text := strings.TrimSuffix("Webhook "+h.Name+": "+event, ": ")
	r := rendered{login: fill("{sender.login|user.username|user_username}", payload),
		branch: strings.TrimPrefix(fill(s.branch, payload), "refs/heads/")}
	r.topic = topicName(strings.ReplaceAll(cmp.Or(h.Topic, fill(s.topic, payload)), "refs/heads/", ""))
	title := fill(s.title, payload)
	if title == "" {
		var pretty bytes.Buffer
		if json.Indent(&pretty, raw, "", "  ") != nil { // not JSON, shown as it came
			pretty.Write(raw)
		}
		r.text = text + fenced(pretty.String(), maxJSON)
		return r
	}
	add := func(before, line string) {
		if line = plaintext.Line(line); line != "" {
			text += "\n" + before + cut(line, maxTitle)
		}
	}
	add("", title)
	add("amount: ", amount(payload))
	add("status: ", fill("{data.object.status}", payload))
	add("by ", r.login)
	add("", fill(s.link, payload))
	r.text = text + fenced(cmp.Or(fill(s.body, payload), commits(payload)), maxBody)
	return r
}

var placeholder = regexp.MustCompile(`\{[^}]*\}`)

// fill replaces the paths in a text by the payload's values. It returns the first alternative whose values are all
// there, "" if there is none.
func fill(text string, payload any) string {
	for alternative := range strings.SplitSeq(text, " || ") {
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
