// SPDX-License-Identifier: Apache-2.0

package see

import (
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/printer"
	"github.com/satchel-dev/satchel/internal/view"
)

// catalogStatus shows a BundleCatalog.
func catalogStatus(ctx context.Context, a *kit.App, o printer.Output, t kit.Target) error {
	c, err := a.Connect()
	if err != nil {
		return err
	}
	found, err := c.Get(ctx, t)
	if err != nil {
		return err
	}
	catalog, isCatalog := found.(*v1alpha1.BundleCatalog)
	if !isCatalog {
		return fmt.Errorf("%s is no BundleCatalog", t)
	}
	status := view.NewCatalogStatus(catalog)
	if o == printer.OutputText {
		_, err = fmt.Fprint(a.Streams.Out, PrintCatalog(status, printer.StyleFor(a.Streams.Out), a.Now()))
	} else {
		err = printer.PrintValue(a.Streams.Out, o, status)
	}
	if err == nil && !status.UpToDate {
		return kit.ErrNo
	}
	return err
}

// PrintCatalog writes the state of a catalog for people.
func PrintCatalog(v view.CatalogStatus, s printer.Style, now time.Time) string {
	color := map[metav1.ConditionStatus]printer.Color{metav1.ConditionTrue: printer.Green, metav1.ConditionFalse: printer.Red}[v.Ready]
	if v.Ready == metav1.ConditionUnknown {
		color = printer.Yellow
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s: %s\n", v1alpha1.BundleCatalogKind, v.Namespace, s.Paint(printer.Bold, v.Name), s.Paint(color, v.State))
	nodes := []printer.Node{{Text: partText(v.Source)}}
	if v.Content != nil {
		nodes = append(nodes, printer.Node{Text: fmt.Sprintf("serves %s with %s, %s, as %s%s", view.Plural(int(v.Content.Packages), "package"),
			view.Plural(int(v.Content.Bundles), "bundle"), printer.BytesText(v.Content.Bytes), view.ShortRevision(view.Inline(v.Content.Digest)),
			published(&v.Content.LastUpdateTime, now))})
	}
	nodes = append(nodes, printer.Node{Text: fmt.Sprintf("priority %d", v.Priority)})
	if v.Problem != nil {
		nodes = append(nodes, printer.Node{Text: s.Paint(printer.Red, "✗ "+view.Inline(v.Reason)), Below: problemNodes(*v.Problem, s, v.Reason)})
	}
	for _, problem := range v.Problems {
		nodes = append(nodes, printer.Node{Text: s.Paint(printer.Yellow, view.Inline(problem))})
	}
	printer.WriteNodes(&out, nodes, "")
	fmt.Fprintf(&out, "%s\n", s.Paint(printer.Bold, "What happens next:"))
	for _, line := range v.Next {
		fmt.Fprintf(&out, "  %s\n", view.Printable(line))
	}
	return out.String()
}
