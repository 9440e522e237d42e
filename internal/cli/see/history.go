// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/cli/tree"
	"github.com/satchel-dev/satchel/internal/view"
)

// HistoryCommand returns the command history.
func HistoryCommand(a *kit.App) *cobra.Command {
	var o printer.Output
	cmd := &cobra.Command{
		Use:     "history NAME",
		GroupID: kit.GroupSee,
		Short:   "Show the last revisions of a BundleDeployment and their outcomes",
		Long: `Lists the revisions that a BundleDeployment tried, the newest first: the version of the bundle and its origin revision
(the branch or tag, and the commit or digest upstream) when it was first tried, when it began, how long it took, its
outcome, and how many objects its plan changed. The column STATE says which revision is current, which was healthy last,
and which is rejected and not retried. Digests are cut to 7 digits; -o wide shows them in full, and the revision of the
content. spec.historyLimit is how many are kept.

` + kit.ExitCodes,
		Example: a.Example(`
# Which revisions were installed here, and with which outcome?
satchel history podinfo -n demo

# Why did the last one fail, with whole digests
satchel history podinfo -o wide

# The revisions that were healthy, for a script
satchel history podinfo -o json | jq -r '.revisions[] | select(.outcome == "Healthy") | .revision'`),
		ValidArgsFunction: a.CompleteOne(kit.Deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := kit.OneDeployment(cmd, args)
			if err != nil {
				return err
			}
			return history(cmd.Context(), a, o, t)
		},
	}
	a.OutputFlag(cmd, &o, printer.OutputTable, printer.OutputWide, printer.OutputJSON, printer.OutputYAML, printer.OutputName)
	return cmd
}

// Revisions are what a deployment tried. Its JSON form is what history -o json prints.
type Revisions struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Applied   string         `json:"applied,omitempty"`
	Healthy   string         `json:"lastHealthy,omitempty"`
	Rejected  string         `json:"rejected,omitempty"`
	Revisions []revisionLine `json:"revisions"`
}

// revisionLine is one revision, and what it is now.
type revisionLine struct {
	v1alpha1.RevisionRecord `json:",inline"`

	States []string `json:"states,omitempty"` // appliedState, LastHealthy, Rejected, Trying
}

func history(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	d, err := c.Deployment(ctx, t)
	if err != nil {
		return err
	}
	found := NewRevisions(d)
	switch {
	case o == printer.OutputJSON || o == printer.OutputYAML:
		return printer.PrintValue(a.Streams.Out, o, found)
	case len(found.Revisions) == 0:
		fmt.Fprintf(a.Streams.ErrOut, "No revision of %s was tried yet; status says what it waits for.\n", view.Inline(t.Name))
	case o == printer.OutputName:
		for _, line := range found.Revisions {
			fmt.Fprintln(a.Streams.Out, view.Inline(line.Revision))
		}
	default:
		fmt.Fprint(a.Streams.Out, found.Table(o == printer.OutputWide, a.Now()).Render(printer.StyleFor(a.Streams.Out)))
	}
	return nil
}

// NewRevisions reads the history of a deployment. A revision that was tried twice is marked as current, or healthy, where it
// was tried last.
func NewRevisions(d *v1alpha1.BundleDeployment) Revisions {
	found := Revisions{Namespace: d.Namespace, Name: d.Name, Applied: d.Status.Applied.Revision,
		Healthy: d.Status.Healthy.Revision, Rejected: d.Status.Rejected.Revision, Revisions: []revisionLine{}}
	marked := map[string]bool{}
	for i, record := range d.Status.History {
		line := revisionLine{RevisionRecord: record}
		for _, is := range []struct{ state, revision string }{{appliedState, found.Applied}, {"LastHealthy", found.Healthy}, {"Rejected", found.Rejected}} {
			if is.revision == record.Revision && !marked[is.state] {
				marked[is.state] = true
				line.States = append(line.States, is.state)
			}
		}
		if i == 0 && record.Outcome == "" {
			line.States = append(line.States, "Trying")
		}
		found.Revisions = append(found.Revisions, line)
	}
	return found
}

// appliedState is the state of the applied revision, in the JSON output.
const appliedState = "Applied"

// stateWords are the states for people.
var stateWords = map[string]string{appliedState: "current", "LastHealthy": "last healthy", "Rejected": "rejected", "Trying": "being tried"}

func (l revisionLine) state() string {
	words := make([]string, 0, len(l.States))
	for _, s := range l.States {
		if s == "LastHealthy" && l.States[0] == appliedState && l.Outcome == v1alpha1.OutcomeHealthy {
			continue // a current healthy revision is the last healthy one
		}
		words = append(words, stateWords[s])
	}
	return kit.Dash(strings.Join(words, ", "))
}

// outcomeColors are those of the outcomes.
var outcomeColors = map[v1alpha1.Outcome]printer.Color{
	v1alpha1.OutcomeHealthy: printer.Green, v1alpha1.OutcomeFailed: printer.Red, v1alpha1.OutcomeRolledBack: printer.Red, v1alpha1.OutcomeSuperseded: printer.Faint,
}

// Table lists the revisions.
func (r Revisions) Table(wide bool, now time.Time) *printer.Table {
	t := &printer.Table{Headers: []string{"VERSION", "ORIGIN", "OUTCOME", "STATE", "STARTED", "TOOK", "CREATE", "UPDATE", "DELETE", "MESSAGE"}}
	if wide {
		t.Headers = []string{"VERSION", "ORIGIN", "REVISION", "OUTCOME", "STATE", "STARTED", "TOOK", "CREATE", "UPDATE", "DELETE", "ATTEMPTS", "GENERATION", "DIGEST", "PLAN", "BUNDLE", "CATALOG", "MESSAGE"}
	}
	for _, l := range r.Revisions {
		message := view.OneLine(l.Message, kit.StatusWidth)
		texts := []string{kit.Dash(view.Inline(l.Version)), view.OriginColumn(l.OriginRevision, l.Revision)}
		if wide {
			message = tree.AllLines(l.Message)
			texts = []string{kit.Dash(view.Inline(l.Version)), kit.Dash(view.Inline(l.OriginRevision)), l.Revision}
		}
		colored := len(texts)
		texts = append(texts, kit.Dash(string(l.Outcome)), l.state(), view.Age(now, l.StartTime)+" ago", l.took(now),
			strconv.Itoa(int(l.Create)), strconv.Itoa(int(l.Update)), strconv.Itoa(int(l.Delete)))
		if wide {
			texts = append(texts, strconv.Itoa(int(l.Attempts)), strconv.FormatInt(l.Generation, 10), kit.Dash(l.Digest), kit.Dash(l.Plan),
				kit.Dash(view.Inline(l.Bundle)), kit.Dash(view.Inline(l.Catalog)))
		}
		row := t.Add(append(texts, message)...)
		row[colored].Color = outcomeColors[l.Outcome]
	}
	return t
}

// took is how long a revision took to its outcome, or takes so far.
func (l revisionLine) took(now time.Time) string {
	switch {
	case l.CompletionTime != nil:
		return duration.HumanDuration(l.CompletionTime.Sub(l.StartTime.Time))
	case l.Outcome != "":
		return "-"
	}
	return view.Age(now, metav1.Time{Time: l.StartTime.Time}) + " so far"
}
