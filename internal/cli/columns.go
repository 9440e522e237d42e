// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/satchel-dev/satchel/api/v1alpha1"
)

// statusWidth is where the column STATUS is cut, unless the output is wide.
const statusWidth = 100

// objectTable lists objects of one kind; qualified puts the kind before the names.
func (a *app) objectTable(g group, o getOptions, qualified bool) *table {
	wide := o.output == outputWide
	t := &table{headers: headers(g.kind, wide, o.everywhere)}
	for _, item := range g.objects {
		s := summarize(item)
		name, revision, limit := item.GetName(), shortRevision(s.revision), statusWidth
		if qualified {
			name = g.kind.word + "/" + name
		}
		if wide {
			revision, limit = s.revision, 0
		}
		texts := []string{name, s.readiness(), dash(printable(revision))}
		if g.kind.name == v1alpha1.BundleDeploymentKind {
			texts = append(texts, objectCount(s.objects))
		}
		texts = append(texts, age(a.now(), item.GetCreationTimestamp()))
		if wide {
			texts = append(texts, wideColumns(item)...)
		}
		texts = append(texts, oneLine(s.text(), limit))
		if o.everywhere {
			texts = append([]string{item.GetNamespace()}, texts...)
		}
		row := t.add(texts...)
		row[readyColumn(o)].color = s.color()
	}
	return t
}

func readyColumn(o getOptions) int {
	if o.everywhere {
		return 2
	}
	return 1
}

func headers(k kind, wide, everywhere bool) []string {
	var h []string
	if everywhere {
		h = append(h, "NAMESPACE")
	}
	h = append(h, "NAME", "READY", "REVISION")
	deployment := k.name == v1alpha1.BundleDeploymentKind
	if deployment {
		h = append(h, "OBJECTS")
	}
	h = append(h, "AGE")
	switch {
	case wide && deployment:
		h = append(h, "SOURCE", "FORMAT", "PACKAGE", "INSTALLED IN", "ACCOUNT", "INTERVAL")
	case wide:
		h = append(h, "FROM", "INTERVAL")
	}
	return append(h, "STATUS")
}

// wideColumns are the further columns of -o wide.
func wideColumns(o object) []string {
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		return []string{o.SourceDisplayName(), dash(string(o.Status.Format)), dash(packageText(o.Status.Package)), o.InstallNamespaceOrDefault(), o.Spec.ServiceAccountName,
			short(o.Spec.IntervalOrDefault())}
	case *v1alpha1.BundleSource:
		from := make([]string, 0, len(o.Spec.Sources))
		for _, s := range o.Spec.Sources {
			from = append(from, printable(upstream(s)))
		}
		return []string{strings.Join(from, ", "), short(o.Spec.IntervalOrDefault())}
	}
	return nil
}

// objectCount is the number of applied objects, and of those in trouble.
func objectCount(counts *v1alpha1.ObjectCounts) string {
	if counts == nil {
		return "-"
	}
	text := strconv.Itoa(int(counts.Applied))
	if counts.Unhealthy > 0 {
		text += fmt.Sprintf(" (%d unhealthy)", counts.Unhealthy)
	}
	return text
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// age is how long ago something was, as kubectl writes it.
func age(now time.Time, then metav1.Time) string {
	if then.IsZero() {
		return "-"
	}
	return duration.HumanDuration(now.Sub(then.Time))
}

// short is a duration without empty parts: 10m instead of 10m0s.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
