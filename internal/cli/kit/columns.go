// SPDX-License-Identifier: Apache-2.0

package kit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// StatusWidth is where the column STATUS is cut, unless the output is wide.
const StatusWidth = 100

// ObjectTable lists objects of one kind; qualified puts the kind before the names.
func (a *App) ObjectTable(g Group, o GetOptions, qualified bool) *printer.Table {
	wide := o.Output == printer.OutputWide
	t := &printer.Table{Headers: headers(g.Kind, wide, o.Everywhere)}
	for _, item := range g.Objects {
		s := view.Summarize(item)
		name, limit := item.GetName(), StatusWidth
		if qualified {
			name = g.Kind.Word + "/" + name
		}
		texts := []string{name, s.Readiness()}
		if g.Kind.Name == v1alpha1.BundleDeploymentKind {
			texts = append(texts, Dash(view.Inline(s.Version)))
		}
		if wide {
			limit = 0
			texts = append(texts, Dash(view.Inline(s.Origin)), Dash(view.Inline(s.Revision)))
		} else {
			texts = append(texts, Dash(view.OriginColumn(s.Origin, s.Revision)))
		}
		if g.Kind.Name == v1alpha1.BundleDeploymentKind {
			texts = append(texts, objectCount(s.Objects))
		}
		texts = append(texts, view.Age(a.Now(), item.GetCreationTimestamp()))
		if wide {
			texts = append(texts, wideColumns(item)...)
		}
		texts = append(texts, view.OneLine(s.Text(), limit))
		if o.Everywhere {
			texts = append([]string{item.GetNamespace()}, texts...)
		}
		row := t.Add(texts...)
		row[readyColumn(o)].Color = printer.SummaryColor(s)
	}
	return t
}

func readyColumn(o GetOptions) int {
	if o.Everywhere {
		return 2
	}
	return 1
}

func headers(k Kind, wide, everywhere bool) []string {
	var h []string
	if everywhere {
		h = append(h, "NAMESPACE")
	}
	h = append(h, "NAME", "READY")
	deployment := k.Name == v1alpha1.BundleDeploymentKind
	if deployment {
		h = append(h, "VERSION")
	}
	h = append(h, "ORIGIN")
	if wide {
		h = append(h, "REVISION")
	}
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
func wideColumns(o view.Object) []string {
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		return []string{effective.SourceDisplayName(o), Dash(string(o.Status.Format)), Dash(view.PackageText(o.Status.Package)), effective.InstallNamespace(o), o.Spec.ServiceAccountName,
			view.Short(effective.Interval(&o.Spec))}
	case *v1alpha1.BundleSource:
		from := make([]string, 0, len(o.Spec.Sources))
		for _, s := range o.Spec.Sources {
			from = append(from, view.Printable(view.Upstream(s)))
		}
		return []string{strings.Join(from, ", "), view.Short(effective.SourceInterval(&o.Spec))}
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

// Dash is the text, or a dash for none.
func Dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
