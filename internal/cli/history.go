// SPDX-License-Identifier: Apache-2.0

package cli

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
)

func (a *app) historyCommand() *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:     "history NAME",
		GroupID: groupSee,
		Short:   "Show the last revisions of a BundleDeployment and their outcomes",
		Long: `Lists the revisions that a BundleDeployment tried, the newest first: when each began, how long it took, its outcome,
and how many objects its plan changed. The column STATE says which revision is current, which was healthy last, and which
is rejected and not retried. spec.historyLimit is how many are kept.

` + exitCodes,
		Example: a.example(`
# Which revisions were installed here, and with which outcome?
satchel history podinfo -n demo

# Why did the last one fail, with whole digests
satchel history podinfo -o wide

# The revisions that were healthy, for a script
satchel history podinfo -o json | jq -r '.revisions[] | select(.outcome == "Healthy") | .revision'`),
		ValidArgsFunction: a.completeOne(deployments),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := oneDeployment(cmd, args)
			if err != nil {
				return err
			}
			return a.history(cmd.Context(), o, t)
		},
	}
	a.outputFlag(cmd, &o, outputTable, outputWide, outputJSON, outputYAML, outputName)
	return cmd
}

// revisions are what a deployment tried. Its JSON form is what history -o json prints.
type revisions struct {
	Namespace string         `json:"namespace"`
	Name      string         `json:"name"`
	Applied   string         `json:"inForce,omitempty"`
	Healthy   string         `json:"lastHealthy,omitempty"`
	Rejected  string         `json:"rejected,omitempty"`
	Revisions []revisionLine `json:"revisions"`
}

// revisionLine is one revision, and what it is now.
type revisionLine struct {
	v1alpha1.RevisionRecord `json:",inline"`

	States []string `json:"states,omitempty"` // appliedState, LastHealthy, Rejected, Trying
}

func (a *app) history(ctx context.Context, o output, t target) error {
	c, err := a.connect()
	if err != nil {
		return err
	}
	d, err := c.deployment(ctx, t)
	if err != nil {
		return err
	}
	found := newRevisions(d)
	switch {
	case o == outputJSON || o == outputYAML:
		return printValue(a.streams.Out, o, found)
	case len(found.Revisions) == 0:
		fmt.Fprintf(a.streams.ErrOut, "No revision of %s was tried yet; status says what it waits for.\n", inline(t.name))
	case o == outputName:
		for _, line := range found.Revisions {
			fmt.Fprintln(a.streams.Out, inline(line.Revision))
		}
	default:
		fmt.Fprint(a.streams.Out, found.table(o == outputWide, a.now()).render(styleFor(a.streams.Out)))
	}
	return nil
}

// newRevisions reads the history of a deployment. A revision that was tried twice is marked as current, or healthy, where it
// was tried last.
func newRevisions(d *v1alpha1.BundleDeployment) revisions {
	found := revisions{Namespace: d.Namespace, Name: d.Name, Applied: d.Status.LastAppliedRevision,
		Healthy: d.Status.LastHealthyRevision, Rejected: d.Status.RejectedRevision, Revisions: []revisionLine{}}
	told := map[string]bool{}
	for i, record := range d.Status.History {
		line := revisionLine{RevisionRecord: record}
		for _, is := range []struct{ state, revision string }{{appliedState, found.Applied}, {"LastHealthy", found.Healthy}, {"Rejected", found.Rejected}} {
			if is.revision == record.Revision && !told[is.state] {
				told[is.state] = true
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
const appliedState = "InForce"

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
	return dash(strings.Join(words, ", "))
}

// outcomeColors are those of the outcomes.
var outcomeColors = map[v1alpha1.Outcome]color{
	v1alpha1.OutcomeHealthy: green, v1alpha1.OutcomeFailed: red, v1alpha1.OutcomeRolledBack: red, v1alpha1.OutcomeSuperseded: faint,
}

// table lists the revisions.
func (r revisions) table(wide bool, now time.Time) *table {
	t := &table{headers: []string{"REVISION", "OUTCOME", "STATE", "STARTED", "TOOK", "CREATE", "UPDATE", "DELETE", "MESSAGE"}}
	if wide {
		t.headers = []string{"REVISION", "OUTCOME", "STATE", "STARTED", "TOOK", "CREATE", "UPDATE", "DELETE", "ATTEMPTS", "GENERATION", "DIGEST", "PLAN", "MESSAGE"}
	}
	for _, l := range r.Revisions {
		revision, message := shortRevision(l.Revision), oneLine(l.Message, statusWidth)
		if wide {
			revision, message = l.Revision, allLines(l.Message)
		}
		texts := []string{revision, dash(string(l.Outcome)), l.state(), age(now, l.StartedTime) + " ago", l.took(now),
			strconv.Itoa(int(l.Create)), strconv.Itoa(int(l.Update)), strconv.Itoa(int(l.Delete))}
		if wide {
			texts = append(texts, strconv.Itoa(int(l.Attempts)), strconv.FormatInt(l.Generation, 10), dash(l.Digest), dash(l.Plan))
		}
		row := t.add(append(texts, message)...)
		row[1].color = outcomeColors[l.Outcome]
	}
	return t
}

// took is how long a revision took to its outcome, or takes so far.
func (l revisionLine) took(now time.Time) string {
	switch {
	case l.FinishedTime != nil:
		return duration.HumanDuration(l.FinishedTime.Sub(l.StartedTime.Time))
	case l.Outcome != "":
		return "-"
	}
	return age(now, metav1.Time{Time: l.StartedTime.Time}) + " so far"
}
