// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/api/v1alpha1"
	"github.com/satchel-dev/satchel/internal/apply/objecterror"
	"github.com/satchel-dev/satchel/internal/apply/plan"
	"github.com/satchel-dev/satchel/internal/apply/tenant"
)

// Successors are objects that the API server refuses because of others that a plan deletes before anything is applied.
type Successors struct {
	Refused []*objecterror.Error
	// Deletions are to be completed before the next dry run: all that the plan has first where they are known to suffice, or else
	// those of objects that can be applied again. None are left when it only remains to be seen whether they sufficed.
	Deletions []plan.DeletionStage
}

// String says which objects wait for which deletions.
func (s Successors) String() string {
	refused := make([]string, 0, len(s.Refused))
	for _, f := range s.Refused {
		refused = append(refused, f.Error())
	}
	return "possible only after the deletion of " + Names(slices.Collect(each(s.Deletions))) + ": " + strings.Join(refused, "; ")
}

// Names are the objects of deletions.
func Names(deletions []plan.Deletion) string {
	names := make([]string, 0, len(deletions))
	for _, deletion := range deletions {
		names = append(names, deletion.ID.String())
	}
	return strings.Join(names, ", ")
}

// LongestSettling is how long after a deletion the API server may refuse an object for what is gone: the usage of a quota, and
// what a webhook has in its cache, are updated later.
func (s Successors) LongestSettling() time.Duration {
	if slices.ContainsFunc(s.Refused, func(f *objecterror.Error) bool { return !allocated(f) }) {
		return 15 * time.Second
	}
	return 0 // allocations end with the deletion
}

// successors separates refusals that may end with the deletions of a plan from final ones. Nothing is deleted for a plan with a final
// one. Of the deletions that are over, gone is a list.
func successors(ctx context.Context, client *tenant.Client, p plan.Plan, failed []*objecterror.Error, gone []plan.Deletion) (found Successors, final []*objecterror.Error) {
	first := slices.Collect(each(p.PruneFirst))
	for _, f := range failed {
		if !endsWith(f, slices.Concat(first, gone)) {
			return Successors{}, advised(failed, slices.Collect(each(p.Prune)))
		}
	}
	if len(failed) == 0 {
		return Successors{}, nil
	}
	found.Refused = failed
	if suffices(ctx, client, failed, first) {
		found.Deletions = p.PruneFirst
		return found, nil
	}
	var stay []string
	for _, stage := range p.PruneFirst {
		kept := stage
		kept.Deletions = nil
		for _, deletion := range stage.Deletions {
			if !goes(deletion) {
				continue
			}
			if why := lasting(ctx, client, deletion); why != "" {
				stay = append(stay, deletion.ID.String()+" ("+why+")")
				continue
			}
			kept.Deletions = append(kept.Deletions, deletion)
		}
		if len(kept.Deletions) > 0 {
			found.Deletions = append(found.Deletions, kept)
		}
	}
	if len(found.Deletions)+len(gone) == 0 {
		return Successors{}, undeletable(failed, stay)
	}
	return found, nil
}

// advised are final refusals. Those that may be caused by what the plan deletes later say how to have it deleted first.
func advised(failed []*objecterror.Error, later []plan.Deletion) []*objecterror.Error {
	explained := make([]*objecterror.Error, 0, len(failed))
	for _, f := range failed {
		if endsWith(f, later) {
			with := *f
			with.Message += "; that may be caused by what leaves the bundle, which is deleted later: " + Names(later) + ". To have it deleted first, set spec.prune.timing to BeforeApply, or annotate it with " +
				v1alpha1.PruneTimingAnnotation + "=" + string(v1alpha1.PruneBeforeApply)
			f = &with
		}
		explained = append(explained, f)
	}
	return explained
}

// undeletable are refusals with the objects that are not deleted for them, although the plan deletes them first.
func undeletable(failed []*objecterror.Error, stay []string) []*objecterror.Error {
	explained := make([]*objecterror.Error, 0, len(failed))
	for _, f := range failed {
		with := *f
		with.Message += fmt.Sprintf("; it is not known whether the API server accepts the object once what left the bundle is deleted, and what could not be restored is not deleted for that: %s. "+
			"Delete it yourself (kubectl delete), or change what the API server refuses", strings.Join(stay, ", "))
		explained = append(explained, &with)
	}
	return explained
}

// each are the deletions of the stages that end with an object gone.
func each(stages []plan.DeletionStage) func(yield func(plan.Deletion) bool) {
	return func(yield func(plan.Deletion) bool) {
		for _, stage := range stages {
			for _, deletion := range stage.Deletions {
				if goes(deletion) && !yield(deletion) {
					return
				}
			}
		}
	}
}

func goes(deletion plan.Deletion) bool { return deletion.Deletes() || deletion.How == plan.Await }

// conflicting are words with which a webhook says that an object cannot be beside another one.
var conflicting = regexp.MustCompile(`(?i)\b(already|conflict\w*|duplicate\w*|exceed\w*|quota|unique|collid\w*|overlap\w*|in use|taken|only one)\b`)

// endsWith tells whether a refusal may be caused by one of the objects: the value that a Service demands is allocated, a quota is used
// up in the namespace of the object, or an admission plugin or webhook speaks of a conflict or names the object. A policy, or what is wrong in
// the object itself, has nothing to do with others.
func endsWith(f *objecterror.Error, gone []plan.Deletion) bool {
	is := func(holds func(plan.Deletion) bool) bool { return slices.ContainsFunc(gone, holds) }
	denied := strings.Contains(f.Message, "admission webhook") && strings.Contains(f.Message, "denied the request")
	switch {
	case allocated(f):
		return is(func(d plan.Deletion) bool { return d.Group == "" && d.ID.Kind == "Service" })
	case exceeded(f) != nil:
		return is(func(d plan.Deletion) bool { return d.Namespace == f.Namespace })
	case strings.Contains(f.Message, "ValidatingAdmissionPolicy"):
		return false
	case denied && conflicting.MatchString(withoutNames(f)):
		return len(gone) > 0
	case denied, f.Reason == metav1.StatusReasonForbidden:
		return is(func(d plan.Deletion) bool { return d.Name != f.Name && names(f.Message, d.Name) })
	}
	return false
}

// nameLike are words that may be names of objects.
var nameLike = regexp.MustCompile(`[A-Za-z0-9.:-]+`)

// withoutNames is what a webhook says, without its own name and that of the object.
func withoutNames(f *objecterror.Error) string {
	_, said, _ := strings.Cut(f.Message, "denied the request")
	return nameLike.ReplaceAllStringFunc(said, func(word string) string {
		if strings.Trim(word, ".:-") == f.Name {
			return ""
		}
		return word
	})
}

// names tells whether a message has a name as a word of its own.
func names(message, name string) bool {
	return slices.Contains(strings.FieldsFunc(message, func(r rune) bool { return strings.ContainsRune(" \"'`/,:;()[]{}", r) }), name)
}

// allocated tells that a port or an address of a Service belongs to another one.
func allocated(f *objecterror.Error) bool {
	return f.Reason == metav1.StatusReasonInvalid && f.Group == "" && f.ID.Kind == "Service" && strings.Contains(f.Message, "is already allocated")
}

// renewable are the kinds that consist of what the bundle says, by group, so that an applied object is as good as the deleted one.
var renewable = map[string]string{
	"":                             "ConfigMap Service ServiceAccount ResourceQuota LimitRange Endpoints ReplicationController",
	"apps":                         "Deployment DaemonSet ReplicaSet",
	"batch":                        "CronJob",
	"networking.k8s.io":            "Ingress IngressClass NetworkPolicy",
	"policy":                       "PodDisruptionBudget",
	"autoscaling":                  "HorizontalPodAutoscaler",
	"rbac.authorization.k8s.io":    "Role RoleBinding ClusterRole ClusterRoleBinding",
	"discovery.k8s.io":             "EndpointSlice",
	"scheduling.k8s.io":            "PriorityClass",
	"node.k8s.io":                  "RuntimeClass",
	"storage.k8s.io":               "StorageClass CSIDriver",
	"admissionregistration.k8s.io": "ValidatingWebhookConfiguration MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding MutatingAdmissionPolicy MutatingAdmissionPolicyBinding",
	"flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
}

// lasting says why an object is not deleted unless it is known that the deletion helps; "" if applying it again restores it. What is
// being deleted already cannot be kept.
func lasting(ctx context.Context, client *tenant.Client, deletion plan.Deletion) string {
	switch {
	case deletion.How == plan.Await:
		return ""
	case !slices.Contains(strings.Fields(renewable[deletion.Group]), deletion.ID.Kind):
		return "applying it again would not bring back its data, or what it stands for"
	case deletion.ID.Kind != "Service" || deletion.Group != "":
		return ""
	}
	live, err := client.Get(ctx, tenant.RefTo(deletion.ID, deletion.Resource))
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return "it cannot be read: " + objecterror.OneLine(err.Error())
	}
	if kind, _, _ := unstructured.NestedString(live.Object, "spec", "type"); kind == "LoadBalancer" {
		return "its load balancer might get another address"
	}
	return ""
}
