// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"slices"
	"strings"

	"github.com/fluxcd/pkg/runtime/conditions"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/dryrun"
	"github.com/satchel-dev/satchel/internal/apply/inventory"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/plan/fields"
	"github.com/satchel-dev/satchel/internal/apply/plan/impact"
	"github.com/satchel-dev/satchel/internal/apply/plan/violation"
	"github.com/satchel-dev/satchel/internal/spec/effective"
	"github.com/satchel-dev/satchel/internal/view"
)

// Preview is what would be done. Its JSON form is what plan -o json prints.
type Preview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Bundle is what was read; Revision and Artifact (a digest) are set when the source has it.
	Bundle   string `json:"bundle"`
	Revision string `json:"revision,omitempty"`
	Artifact string `json:"artifact,omitempty"`
	Applied  string `json:"applied,omitempty"`
	Format   string `json:"format"`
	// Content is the digest of the converted bundle; it is left out if that includes values of a Secret. Digest is that of the
	// controller's plan, if it planned the same content.
	Content string `json:"content,omitempty"`
	Digest  string `json:"digest,omitempty"`

	Summary   string          `json:"summary"`
	Objects   []ObjectPreview `json:"objects"`
	Unchanged int             `json:"unchanged"`
	// Hooks run once, in this order.
	Hooks   []hookPreview `json:"hooks,omitempty"`
	Held    string        `json:"held,omitempty"`
	Skipped []string      `json:"skipped,omitempty"`
	// Kept are CRDs that stay as they are on the cluster, because the deployment goes back to an earlier revision.
	Kept []string `json:"kept,omitempty"`
	// Certificates are Secrets that the controller issues; they are not among the objects.
	Certificates []string           `json:"certificates,omitempty"`
	Violations   []ViolationPreview `json:"violations,omitempty"`
	Account      AccountPreview     `json:"account"`
	Impact       ImpactPreview      `json:"impact"`
	Approval     ApprovalPreview    `json:"approval"`
	Warnings     []string           `json:"warnings,omitempty"`
	Notes        []string           `json:"notes,omitempty"`

	Mode       v1alpha1.ApprovalMode `json:"-"`
	deployment *v1alpha1.BundleDeployment
	secret     bool // the converted bundle includes values of a Secret
}

// What happens to an object, in addition to the verbs of a plan.
const (
	VerbDelete  = "Delete"
	VerbRelease = "Release"
)

// ObjectPreview is an object that would change.
type ObjectPreview struct {
	Verb      string          `json:"verb"`
	Group     string          `json:"group,omitempty"`
	Kind      string          `json:"kind"`
	Namespace string          `json:"namespace,omitempty"`
	Name      string          `json:"name"`
	Reason    string          `json:"reason,omitempty"`
	Fields    []fields.Change `json:"fields,omitempty"`
	More      int             `json:"more,omitempty"` // changes that are too many to list
	// Unknown says why there is no result of a dry run: the fields are then those of the bundle that differ. Failed says why
	// the API server would refuse the object, and Contested lists the field managers that would lose fields.
	Unknown   string `json:"unknown,omitempty"`
	Failed    string `json:"failed,omitempty"`
	Contested string `json:"contested,omitempty"`
	// Notes name fields that are removed because they exclude what the bundle sets, and say what becomes of fields of
	// autoscalers that leave the bundle.
	Notes []string `json:"notes,omitempty"`

	Before, After *unstructured.Unstructured `json:"-"`
	Desired       map[string]any             `json:"-"` // as the bundle has it
	approximate   bool                       // after is the object of the bundle, without the defaults of the API server
	Applied       bool                       `json:"-"` // by the deployment, before
}

// title is the object for people.
func (o ObjectPreview) title() string {
	kind, name := o.Kind, o.Name
	if o.Group != "" {
		kind += "." + o.Group
	}
	if o.Namespace != "" {
		name = o.Namespace + "/" + name
	}
	return kind + " " + name
}

// ViolationPreview is why a plan would be refused.
type ViolationPreview struct {
	Rule    string `json:"rule"`
	Object  string `json:"object,omitempty"`
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

func violationOf(v violation.Violation) ViolationPreview {
	made := ViolationPreview{Rule: string(v.Rule), Message: v.Message, Remedy: v.Remedy}
	if v.Object.Name != "" {
		made.Object = v.Object.String()
	}
	return made
}

// String is the violation for people.
func (v ViolationPreview) String() string {
	if v.Remedy == "" {
		return v.Message
	}
	return v.Message + ": " + v.Remedy
}

// AccountPreview lists the permissions that the ServiceAccount lacks to carry out the plan.
type AccountPreview struct {
	Name      string             `json:"name"`
	Unchecked string             `json:"unchecked,omitempty"` // why the permissions are unknown
	Missing   []ViolationPreview `json:"missing,omitempty"`
	// Manifests are roles and bindings that grant what is missing.
	Manifests []*unstructured.Unstructured `json:"manifests,omitempty"`
}

// ApprovalPreview is what has to happen before the plan is carried out.
type ApprovalPreview struct {
	Mode    string   `json:"mode"`
	Needed  bool     `json:"needed"`
	Because []string `json:"because,omitempty"`
}

// begin fills in the fields that come from the deployment.
func (v *Preview) begin(d *v1alpha1.BundleDeployment, o previewOptions) {
	v.Namespace = d.Namespace
	v.Name = d.Name
	v.Applied = d.Status.Applied.Revision
	v.Mode = effective.ApprovalMode(&d.Spec)
	v.deployment = d
	if d.Spec.Suspend {
		v.Notes = append(v.Notes, "the deployment is suspended: nothing changes until it is resumed")
	}
	if !d.DeletionTimestamp.IsZero() {
		v.Notes = append(v.Notes, "the deployment is being deleted: its objects are removed")
	}
	if o.Path == "" && o.image == "" && o.revision == "" && d.Status.Rejected.Revision != "" {
		v.Notes = append(v.Notes, "the controller rejected revision "+view.ShortRevision(d.Status.Rejected.Revision)+" and keeps the last healthy one applied; see satchel reconcile --retry")
	}
	if effective.DriftMode(&d.Spec) != v1alpha1.DriftEnabled {
		v.Notes = append(v.Notes, "spec.drift.correction is "+string(effective.DriftMode(&d.Spec))+": drift is not corrected")
	}
}

// Changes tells whether anything would be done, or refused.
func (v *Preview) Changes() bool {
	return len(v.Objects)+len(v.Hooks)+len(v.Violations)+len(v.Account.Missing) > 0 || v.Held != ""
}

// Refused tells whether the controller would refuse the plan.
func (v *Preview) Refused() bool {
	return len(v.Violations)+len(v.Account.Missing) > 0 || slices.ContainsFunc(v.Objects, func(o ObjectPreview) bool { return o.Failed != "" })
}

// report turns the plan and the forecasts into the value.
func (p *Previewer) report() {
	v := p.Out
	for action := range p.made.Actions() {
		if action.Verb == plan.Unchanged {
			v.Unchanged++
			continue
		}
		v.Objects = append(v.Objects, reportAction(*action, p.forecasts[action.ID]))
	}
	for _, stages := range [][]plan.DeletionStage{p.made.PruneFirst, p.made.Prune} {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				if reported, some := reportDeletion(deletion, p.forecasts[deletion.ID]); some {
					v.Objects = append(v.Objects, reported)
				}
			}
		}
	}
	if p.made.Held != nil {
		v.Held = p.made.Held.String()
	}
	for _, id := range p.made.Skipped {
		v.Skipped = append(v.Skipped, id.String())
	}
	for _, found := range p.made.Violations {
		if found.Rule == violation.PermissionMissing { // it was checked as the user
			p.note("%s: its change is unknown", strings.Replace(found.Message, "the ServiceAccount may not", "you may not", 1))
			continue
		}
		v.Violations = append(v.Violations, violationOf(found))
	}
	for _, id := range p.made.Kept {
		v.Kept = append(v.Kept, id.String())
	}
	v.Warnings = append(v.Warnings, p.made.Warnings...)
	v.Summary = p.made.Summary()
	v.Hooks = p.hooks()
	v.Impact = p.impact()
	v.approve(p.Deployment)
}

// verbs of a plan that users see as one: the object is updated to the bundle.
var plainVerbs = map[plan.Verb]plan.Verb{plan.Repair: plan.Update, plan.Settle: plan.Update}

func reportAction(action plan.Action, forecast dryrun.Forecast) ObjectPreview {
	verb := action.Verb
	if plainer, found := plainVerbs[verb]; found && forecast.Live != nil {
		verb = plainer
	}
	o := ObjectPreview{
		Verb: string(verb), Group: action.Group, Kind: action.ID.Kind, Namespace: action.Namespace, Name: action.Name,
		Reason: action.Reason, Contested: forecast.Contested, Notes: forecast.Notes,
		Before: forecast.Live, After: forecast.After, Desired: action.Desired.Object, Applied: action.Previous.Confirmed(),
	}
	if forecast.Failed != nil {
		o.Failed = forecast.Failed.Error()
	}
	if forecast.Waits != "" {
		o.Reason += "; " + forecast.Waits
	}
	switch {
	case forecast.Unread != "":
		o.Unknown = forecast.Unread
	case forecast.Live != nil && forecast.After == nil:
		o.Unknown = forecast.Untold
		o.Fields, o.More = fields.Wanted(forecast.Live, action.Desired)
		o.After, o.approximate = action.Desired, true
	case forecast.Live != nil:
		o.Fields, o.More = fields.Diff(forecast.Live, forecast.After)
	case forecast.After == nil:
		o.After = action.Desired
	}
	return o
}

// reportDeletion skips objects that are only dropped from the inventory or waited for.
func reportDeletion(deletion plan.Deletion, forecast dryrun.Forecast) (ObjectPreview, bool) {
	o := ObjectPreview{
		Verb: VerbDelete, Group: deletion.Group, Kind: deletion.ID.Kind, Namespace: deletion.Namespace, Name: deletion.Name,
		Reason: strings.TrimSuffix(deletion.Reason+"; "+deletion.Note, "; "), Before: forecast.Live, Applied: true,
	}
	if deletion.How == plan.Release {
		o.Verb = VerbRelease
	}
	return o, deletion.Deletes() || deletion.How == plan.Release
}

// isPlanned tells whether the controller planned the same content. If the content includes values of a Secret, which only the
// controller can digest with its key, it compares the revision.
func (v *Preview) isPlanned(d *v1alpha1.BundleDeployment) bool {
	planned := d.Status.Plan
	switch {
	case planned == nil || d.Status.ObservedGeneration != d.Generation:
		return false
	case v.secret:
		return planned.Content == "" && planned.Inputs != "" && planned.Revision == v.Revision
	}
	return planned.Content == v.Content
}

// approve says which approval the plan needs. The content tells whether it is the plan of the controller.
func (v *Preview) approve(d *v1alpha1.BundleDeployment) {
	v.Approval.Mode = string(v.Mode)
	if v.isPlanned(d) {
		v.Digest = d.Status.Plan.Digest
	}
	if v.secret {
		v.Notes = append(v.Notes, "the content includes values of Secrets: these are not shown, and there is no digest of the content")
	}
	pending := conditions.Get(d, v1alpha1.ApprovalPendingCondition)
	switch {
	case v.Digest != "" && pending != nil && string(pending.Status) == "True":
		asked, _, _ := strings.Cut(pending.Message, "\n") // what follows is how to see and approve it
		v.Approval.Needed, v.Approval.Because = true, []string{strings.TrimSuffix(asked, ".")}
	case v.Mode == v1alpha1.ApprovalManual && len(v.Objects) > 0 && v.Digest == "":
		v.Approval.Needed, v.Approval.Because = true, []string{"spec.approval.mode is Manual"}
	case v.Mode == v1alpha1.ApprovalOnEscalation && v.Digest == "":
		v.Approval.Because = v.escalations()
		v.Approval.Needed = len(v.Approval.Because) > 0
	case v.Held != "":
		v.Approval.Needed, v.Approval.Because = true, []string{"what would be deleted is held"}
	}
}

// escalations are the changes that need approval with OnEscalation.
func (v *Preview) escalations() []string {
	var because []string
	if len(v.Impact.Permissions) > 0 {
		because = append(because, "new permissions")
	}
	if len(v.Impact.Definitions) > 0 {
		because = append(because, "CustomResourceDefinitions")
	}
	because = append(because, v.Impact.Further...)
	if slices.ContainsFunc(v.Objects, func(o ObjectPreview) bool { return o.Verb == string(plan.Adopt) }) {
		because = append(because, "adoption of objects of others")
	}
	var leaving, staying []inventory.ID
	for _, o := range v.Objects {
		id := inventory.ID{Group: o.Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		if o.Verb == VerbDelete || o.Verb == string(plan.Recreate) {
			leaving = append(leaving, id)
		} else {
			staying = append(staying, id)
		}
	}
	if len(impact.WithoutRenamed(leaving, staying)) > 0 {
		because = append(because, "deletions")
	}
	return because
}
