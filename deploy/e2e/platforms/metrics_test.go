package platforms

import (
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"arizuko/pkg/daemon"
	"arizuko/pkg/testkit/need"
)

// daemonsOf has the daemons that a word in the page's column means.
var daemonsOf = map[string][]string{
	"all":             daemon.Suite(),
	"adapters":        adapters(),
	"adapters, dashd": append(adapters(), "dashd"),
	"gated":           {"gated"}, "routd": {"routd"}, "onbod": {"onbod"}, "dashd": {"dashd"},
	"egress": nil, // it runs for agents with the network ask: see TestEgress in runtimes
}

func adapters() (names []string) {
	for _, a := range daemon.Adapters() {
		names = append(names, a.Name)
	}
	return names
}

var (
	metricRow    = regexp.MustCompile("(?m)^\\| `(arizuko_\\w+)` \\| (\\w+) \\| ([^|]*) \\| [^|]* \\| ([\\w, ]+) \\| (.*) \\|$")
	metricType   = regexp.MustCompile(`(?m)^# TYPE (arizuko_\w+) (\w+)$`)
	metricHelp   = regexp.MustCompile(`(?m)^# HELP (arizuko_\w+) (.*)$`)
	metricSample = regexp.MustCompile(`(?m)^(arizuko_\w+?)(?:_bucket|_sum|_count)?(?:\{([^}]*)\})? `)
	labelName    = regexp.MustCompile(`(\w+)="`)
)

// TestMetrics_RunningDaemons_AnswerWhatThePageLists starts every daemon, on all platforms, and compares
// its /metrics with the page.
func TestMetrics_RunningDaemons_AnswerWhatThePageLists(t *testing.T) {
	need.Full(t)
	t.Parallel()
	i := newInstance(t)
	for _, p := range []func() *fixture{
		func() *fixture { return i.serve(newTelegram()) }, func() *fixture { return i.serve(newDiscord()) }, func() *fixture { return i.serve(newSlack()) },
	} {
		p()
	}
	i.start(daemonsOf["all"]...)
	i.connect()
	page, err := os.ReadFile("../../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]string{} // daemon → metric → type, labels and meaning
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		daemons, known := daemonsOf[row[4]]
		if !known {
			t.Errorf("%s: which daemons are %q?", row[1], row[4])
		}
		labels := strings.Split(strings.NewReplacer("`", "", " ", "").Replace(row[3]), ",")
		slices.Sort(labels)
		for _, daemon := range daemons {
			if want[daemon] == nil {
				want[daemon] = map[string]string{}
			}
			want[daemon][row[1]] = strings.TrimSpace(row[2]+" "+strings.Join(labels, " ")) + ": " + row[5]
		}
	}
	for _, daemon := range daemonsOf["all"] {
		i.scrape(daemon) // so that the next one has a request to show
		got := metricsOf(i.scrape(daemon))
		for _, name := range slices.Sorted(maps.Keys(want[daemon])) {
			if got[name] != want[daemon][name] {
				t.Errorf("%s has %s as %q, the page has %q", daemon, name, got[name], want[daemon][name])
			}
			delete(got, name)
		}
		for name := range got {
			t.Errorf("%s has %s, of which the page does not say so", daemon, name)
		}
	}
}

func (i *instance) scrape(daemon string) string {
	i.T.Helper()
	res, err := http.Get(i.Instance.URL(daemon) + "/metrics")
	i.OK(err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	i.OK(err)
	return string(body)
}

// metricsOf returns the type, the labels and the meaning of each metric that a daemon shows a value of.
func metricsOf(body string) map[string]string {
	types, help, all := map[string]string{}, map[string]string{}, map[string]string{}
	for _, m := range metricHelp.FindAllStringSubmatch(body, -1) {
		help[m[1]] = strings.ReplaceAll(m[2], `\\`, `\`)
	}
	for _, m := range metricType.FindAllStringSubmatch(body, -1) {
		types[m[1]] = m[2]
	}
	for _, m := range metricSample.FindAllStringSubmatch(body, -1) {
		name := m[1]
		if types[name] == "" { // the name ends like a part of a histogram
			continue
		}
		var labels []string
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			if l[1] != "le" {
				labels = append(labels, l[1])
			}
		}
		slices.Sort(labels)
		all[name] = strings.TrimSpace(types[name]+" "+strings.Join(labels, " ")) + ": " + help[name]
	}
	return all
}
