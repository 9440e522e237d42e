// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/apply/parallel"
	"github.com/satchel-dev/satchel/internal/cli/check"
	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/cli/remove"
	"github.com/satchel-dev/satchel/internal/install"
	"github.com/satchel-dev/satchel/internal/view"
)

// installer installs Satchel with the chosen options.
type installer struct {
	*check.Examiner
	app      *kit.App
	flags    installOptions
	chosen   install.Options
	before   *install.Record // what is installed; nil when nothing says
	pieces   []*piece
	obsolete []install.ID // of before, and not of what was chosen
}

// piece is one object of the installation.
type piece struct {
	id       install.ID
	desired  *unstructured.Unstructured
	resource schema.GroupVersionResource
	live     *unstructured.Unstructured // nil when there is none
	recreate string                     // why it cannot be changed in place
	outcome  pieceOutcome
}

// pieceOutcome is what the installation does with an object.
type pieceOutcome string

// Outcomes.
const (
	pieceCreated   pieceOutcome = "created"
	pieceChanged   pieceOutcome = "changed"
	pieceUnchanged pieceOutcome = "unchanged"
	pieceRecreated pieceOutcome = "recreated"
	pieceRemoved   pieceOutcome = "removed"
	PieceKept      pieceOutcome = "kept"
)

// newInstaller reads what is installed, and compares it with the chosen options. It refuses forbidden changes.
func newInstaller(ctx context.Context, a *kit.App, o installOptions) (*installer, error) {
	e, err := check.NewExaminer(a, o.namespace)
	if err != nil {
		return nil, err
	}
	i := &installer{Examiner: e, app: a, flags: o}
	if i.before, err = recordOf(ctx, e, o.namespace); err != nil {
		return nil, err
	}
	var before install.Options
	if i.before != nil {
		before = i.before.Options
	}
	if i.chosen, err = chosen(a, o, before); err != nil {
		return nil, err
	}
	desired, err := install.Manifests(i.chosen)
	if err != nil {
		return nil, err
	}
	if i.pieces, err = pieces(ctx, e, desired); err != nil {
		return nil, err
	}
	if i.before != nil {
		i.obsolete = i.before.Without(i.ids())
	}
	if err := i.refuse(); err != nil {
		return nil, err
	}
	if install.HasPlaceholders(desired) {
		return nil, fmt.Errorf("the images of %s are examples and not published: push those of the release to a registry that the cluster reaches, and name it with --registry", install.PlaceholderRegistry)
	}
	return i, nil
}

func (i *installer) ids() []install.ID {
	ids := make([]install.ID, 0, len(i.pieces))
	for _, p := range i.pieces {
		ids = append(ids, p.id)
	}
	return ids
}

// recordOf is the record of an installation; nil where there is none.
func recordOf(ctx context.Context, e *check.Examiner, namespace string) (*install.Record, error) {
	kept, err := e.One(ctx, configMapsResource, namespace, install.RecordName, true)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // nothing is known, which is no error
	case err != nil:
		return nil, fmt.Errorf("reading the ConfigMap %s/%s, which says what is installed: %w", namespace, install.RecordName, err)
	}
	record, err := install.ReadRecord(kept.Body)
	return &record, err
}

var configMapsResource = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// pieces reads the existing objects of the desired ones.
func pieces(ctx context.Context, e *check.Examiner, desired []*unstructured.Unstructured) ([]*piece, error) {
	var pieces []*piece
	for _, o := range desired {
		mapping, err := e.Mapper.RESTMapping(o.GroupVersionKind().GroupKind(), o.GroupVersionKind().Version)
		if err != nil {
			return nil, fmt.Errorf("the cluster does not serve %s, which Satchel needs for %s: %w", o.GroupVersionKind(), o.GetName(), err)
		}
		pieces = append(pieces, &piece{id: install.IDOf(o), desired: o, resource: mapping.Resource})
	}
	problems := parallel.Each(ctx, kit.AtOnce, pieces, func(ctx context.Context, p *piece) error {
		found, err := e.One(ctx, p.resource, p.id.Namespace, p.id.Name, true)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return fmt.Errorf("reading %s: %w", p.id, err)
		}
		p.live = found.Body
		p.recreate = whyRecreate(p.live, p.desired)
		return nil
	})
	return pieces, errors.Join(append(problems, context.Cause(ctx))...)
}

// immutable are fields of installed objects that the API server does not change, and what a difference means.
var immutable = map[string]struct {
	path []string
	why  string
}{
	"Deployment":         {[]string{"spec", "selector"}, "its selector is another one"},
	"ClusterRoleBinding": {[]string{"roleRef"}, "it binds another role"},
	"RoleBinding":        {[]string{"roleRef"}, "it binds another role"},
}

// whyRecreate says why an object cannot be updated in place; empty if it can. The dry run of the API server would refuse
// such an update, and an upgrade from the oldest version needs one (docs/installation.md).
func whyRecreate(live, desired *unstructured.Unstructured) string {
	field, known := immutable[desired.GetKind()]
	if !known {
		return ""
	}
	was, _, _ := unstructured.NestedFieldNoCopy(live.Object, field.path...)
	wanted, _, _ := unstructured.NestedFieldNoCopy(desired.Object, field.path...)
	if equality.Semantic.DeepEqual(was, wanted) {
		return ""
	}
	return field.why
}

// refuse lists what prevents the installation.
func (i *installer) refuse() error {
	var problems []string
	for _, p := range i.pieces {
		if p.live == nil {
			continue
		}
		if !p.live.GetDeletionTimestamp().IsZero() {
			problems = append(problems, fmt.Sprintf("%s is being deleted%s: run this again when it is gone", p.id, remove.WithFinalizers(p.live)))
		}
		if tool := kit.Deliverer(p.live); tool != "" {
			problems = append(problems, fmt.Sprintf("%s comes from %s: upgrade it there, or remove it there first", p.id, view.Inline(tool)))
		}
		if other := elsewhere(p); other != "" {
			problems = append(problems, fmt.Sprintf("Satchel is installed in the namespace %s (%s): give --system-namespace %s, or uninstall it there first", other, p.id, other))
		}
	}
	if i.before != nil && !i.flags.downgrade {
		if order, known := install.Order(i.app.Version.Version, i.before.Version); known && order < 0 {
			problems = append(problems, fmt.Sprintf("%s is installed, and this program is %s: use a newer program, or add --allow-downgrade", i.before.Version, i.app.Version.Version))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("nothing was changed: %s", sentenceList(problems))
}

// sentenceList is one problem, or several in lines.
func sentenceList(problems []string) string {
	problems = slices.Compact(slices.Sorted(slices.Values(problems)))
	if len(problems) == 1 {
		return problems[0]
	}
	return "there are " + view.Plural(len(problems), "problem") + ":\n  - " + strings.Join(problems[:min(len(problems), kit.MostListed)], "\n  - ")
}

// elsewhere is another namespace in which the controllers run, as a binding of the cluster tells.
func elsewhere(p *piece) string {
	if p.id.Kind != "ClusterRoleBinding" {
		return ""
	}
	was, wanted := subjectNamespace(p.live), subjectNamespace(p.desired)
	if was == wanted {
		return ""
	}
	return was
}

func subjectNamespace(binding *unstructured.Unstructured) string {
	subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
	for _, s := range subjects {
		subject, _ := s.(map[string]any)
		if namespace, _ := subject["namespace"].(string); namespace != "" {
			return namespace
		}
	}
	return ""
}

// namespaceThere tells whether the controllers' namespace exists.
func (i *installer) namespaceThere() bool {
	return slices.ContainsFunc(i.pieces, func(p *piece) bool { return p.id.Kind == "Namespace" && p.live != nil })
}
