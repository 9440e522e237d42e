// SPDX-License-Identifier: Apache-2.0

package list

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// objectTable lists objects of one kind; qualified puts the kind before the names.
func objectTable(a *kit.App, g kit.Group, o Options, qualified bool) *printer.Table {
	t := &printer.Table{Headers: headers(g.Kind, o.isWide(), o.Everywhere), NoHeaders: o.NoHeaders}
	if !o.isWide() {
		t.Width = printer.WidthOf(a.Streams.Out)
	}
	for _, item := range g.Objects {
		t.Rows = append(t.Rows, objectRow(a, g.Kind, item, o, qualified))
	}
	return t
}

func (o Options) isWide() bool { return o.Output == Format(printer.OutputWide) }

// objectRow is the line of an object.
func objectRow(a *kit.App, k kit.Kind, item view.Object, o Options, qualified bool) []printer.Cell {
	s := view.Summarize(item)
	name := item.GetName()
	if qualified {
		name = k.Word + "/" + name
	}
	deployment := k.Name == v1alpha1.BundleDeploymentKind
	texts := []string{name, s.Readiness()}
	if deployment {
		texts = append(texts, kit.Dash(view.Inline(s.Version)))
	}
	if o.isWide() {
		texts = append(texts, kit.Dash(view.Inline(s.Origin)), kit.Dash(view.Inline(s.Revision)))
	} else {
		texts = append(texts, kit.Dash(view.OriginColumn(s.Origin, s.Revision)))
	}
	if deployment {
		texts = append(texts, objectCount(s.Objects), kit.Dash(view.PendingWord(item)))
	}
	if r, isRollout := item.(*v1alpha1.BundleRollout); isRollout {
		texts = append(texts, rolloutColumns(r)...)
	}
	texts = append(texts, catalogColumns(item)...)
	texts = append(texts, view.Age(a.Now(), item.GetCreationTimestamp()))
	if o.isWide() {
		texts = append(texts, wideColumns(item)...)
	}
	texts = append(texts, view.OneLine(s.Text(), 0))
	if o.Everywhere {
		texts = append([]string{item.GetNamespace()}, texts...)
	}
	row := printer.Cells(texts...)
	row[readyColumn(o)].Color = printer.SummaryColor(s)
	return row
}

func readyColumn(o Options) int {
	if o.Everywhere {
		return 2
	}
	return 1
}

func headers(k kit.Kind, wide, everywhere bool) []string {
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
		h = append(h, "OBJECTS", "PENDING")
	}
	switch k.Name {
	case v1alpha1.BundleRolloutKind:
		h = append(h, "WAVE", "UPDATED", "FAILED")
	case v1alpha1.BundleCatalogKind:
		h = append(h, "PACKAGES", "BUNDLES", "PRIORITY")
	}
	h = append(h, "AGE")
	switch {
	case wide && deployment:
		h = append(h, "SOURCE", "FORMAT", "PACKAGE", "INSTALLED IN", "ACCOUNT", "INTERVAL")
	case wide && k.Name == v1alpha1.BundleSourceKind:
		h = append(h, "FROM", "INTERVAL")
	case wide:
		h = append(h, "SOURCE")
	}
	return append(h, "STATUS")
}

// wideColumns are the further columns of -o wide.
func wideColumns(o view.Object) []string {
	switch o := o.(type) {
	case *v1alpha1.BundleDeployment:
		return []string{effective.SourceDisplayName(o), kit.Dash(string(o.Status.Format)), kit.Dash(view.PackageText(o.Status.Healthy.Package)), effective.InstallNamespace(o), o.Spec.ServiceAccountName,
			view.Short(effective.Interval(&o.Spec))}
	case *v1alpha1.BundleSource:
		return []string{upstreams(o.Spec.Sources), view.Short(effective.SourceInterval(&o.Spec))}
	case *v1alpha1.BundleCatalog:
		spec := effective.CatalogSource(&o.Spec)
		return []string{upstreams(spec.Sources), view.Short(effective.SourceInterval(spec))}
	case *v1alpha1.BundleRollout:
		return []string{o.Spec.SourceRef.Name}
	}
	return nil
}

// rolloutColumns are the open wave, and how many clusters are updated and failed.
func rolloutColumns(o *v1alpha1.BundleRollout) []string {
	failed := "-"
	if o.Status.Clusters != nil {
		failed = strconv.Itoa(int(o.Status.Clusters.Failed))
	}
	return []string{kit.Dash(o.Status.Wave), kit.Dash(o.Status.Progress), failed}
}

// upstreams are the places that content comes from.
func upstreams(sources []v1alpha1.Source) string {
	from := make([]string, 0, len(sources))
	for _, s := range sources {
		from = append(from, view.Printable(view.Upstream(s)))
	}
	return strings.Join(from, ", ")
}

// catalogColumns are the columns that only catalogs have; nil for other objects.
func catalogColumns(o view.Object) []string {
	catalog, isCatalog := o.(*v1alpha1.BundleCatalog)
	if !isCatalog {
		return nil
	}
	columns := []string{"-", "-", strconv.Itoa(int(catalog.Spec.Priority))}
	if content := catalog.Status.Content; content != nil {
		columns[0], columns[1] = strconv.Itoa(int(content.Packages)), strconv.Itoa(int(content.Bundles))
	}
	return columns
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
