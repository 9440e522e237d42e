// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/satchel-dev/satchel/internal/cli/kit"
	"github.com/satchel-dev/satchel/internal/view"
)

// guards checks what protects the controllers and the approvals.
func (e *Examiner) guards(ctx context.Context) {
	e.policies(ctx)
	e.keys(ctx)
	const check = "Network policies"
	policies, err := e.Installed(ctx, PoliciesResource, "")
	switch {
	case err != nil:
		e.add(check, CheckUnknown, "", "those of the namespace %s cannot be listed: %s", e.Namespace, e.WhyNot(err))
	case len(policies) == 0:
		e.add(check, CheckWarning, "Apply config/network: without it every Pod of the cluster reaches the artifacts.", "there is none in the namespace %s", e.Namespace)
	default:
		e.add(check, CheckOK, "", "%d in the namespace %s", len(policies), e.Namespace)
	}
}

// admissionPolicies are those of config/admission; their bindings have the same names.
var admissionPolicies = []string{"satchel-approval", "satchel-approvers", "satchel-bundles", "satchel-configmaps", "satchel-rollout-gates", "satchel-rollouts", "satchel-secrets", "satchel-signatures"}

// policies checks that the admission policies are installed and bound.
func (e *Examiner) policies(ctx context.Context) {
	const check = "Admission policies"
	const hint = "Apply config/admission: without it a user who edits a deployment or source can switch approval off, omit signatures, or use Secrets that the user may not read."
	for _, name := range admissionPolicies {
		for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
			_, err := e.One(ctx, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}, "", name, false)
			switch {
			case apierrors.IsNotFound(err):
				e.add(check, CheckFailed, hint, "%s %s does not exist", resource, name)
				return
			case err != nil:
				e.add(check, CheckUnknown, "", "%s %s cannot be read: %s", resource, name, e.WhyNot(err))
				return
			}
		}
	}
	e.add(check, CheckOK, "", "%s are installed and bound", strings.Join(admissionPolicies, ", "))
}

// KeysSecret holds the keys of approvals and hashes.
const KeysSecret = "bundle-deployment-controller-keys"

// keys checks that the keys of the installation exist. Only metadata is read: the fields that managers set tell whether
// there is a key.
func (e *Examiner) keys(ctx context.Context) {
	const check = "Keys"
	found, err := e.One(ctx, schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, e.Namespace, KeysSecret, false)
	switch {
	case apierrors.IsNotFound(err):
		e.add(check, CheckFailed, "Restore it from a backup, or install Satchel again: everything that needs an approval then has to be approved again.",
			"the Secret %s/%s, which proves what was approved, does not exist, so that the deployment controller does not start", e.Namespace, KeysSecret)
		return
	case err != nil:
		e.add(check, CheckUnknown, "", "the Secret %s/%s cannot be read: %s", e.Namespace, KeysSecret, e.WhyNot(err))
		return
	}
	if !setsData(found.GetManagedFields()) {
		e.add(check, CheckWarning, "See whether the deployment controller runs: it adds the first key.", "the Secret %s/%s has no key yet", e.Namespace, KeysSecret)
		return
	}
	readable, err := e.may(ctx, e.Namespace, "default", action{verb: "get", resource: "secrets", namespace: e.Namespace})
	if err == nil && readable {
		e.add(check, CheckWarning, "Remove the permission: with the keys, a user who writes statuses can forge approvals.",
			"the ServiceAccount default may read the Secrets of the namespace %s", e.Namespace)
		return
	}
	e.add(check, CheckOK, "", "they are in the Secret %s/%s", e.Namespace, KeysSecret)
}

// setsData tells whether a field manager set data of an object.
func setsData(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:data"`))
	})
}

// mostTroubles is how many objects that are not Ready are named.
const mostTroubles = 5

// troubles names the deployments, sources and rollouts that are not Ready. That is rarely Satchel's fault.
func (e *Examiner) troubles(ctx context.Context) {
	for _, k := range kit.Known {
		check := k.Name + "s"
		listed, err := e.List(ctx, k, true, "")
		if k.Name == kit.Rollouts.Name && kit.IsAPIMissing(err) {
			continue // rollouts are optional
		}
		if err != nil {
			e.add(check, CheckUnknown, "", "they cannot be listed: %s", e.WhyNot(err))
			continue
		}
		var lines []string
		unseen := 0
		for _, raw := range listed {
			o, err := kit.Typed(k, raw)
			if err != nil {
				continue
			}
			s := view.Summarize(o)
			switch {
			case s.Ready == "" && e.Now.Sub(o.GetCreationTimestamp().Time) > staleAfter:
				unseen++
			case s.Ready == metav1.ConditionFalse && !s.Suspended:
				lines = append(lines, fmt.Sprintf("%s/%s: %s: %s", o.GetNamespace(), o.GetName(), s.Reason, view.OneLine(s.Message, kit.StatusWidth)))
			}
		}
		e.addTroubles(check, len(listed), unseen, lines)
	}
}

func (e *Examiner) addTroubles(check string, all, unseen int, lines []string) {
	if unseen > 0 {
		e.add(check, CheckFailed, "See whether the controller runs, and whether its --watch-label-selector leaves them out.", "%d of %d have never been reconciled by a controller", unseen, all)
	}
	if len(lines) == 0 {
		if unseen == 0 {
			e.add(check, CheckOK, "", "%d, and none failing", all)
		}
		return
	}
	slices.Sort(lines)
	shown := lines[:min(len(lines), mostTroubles)]
	text := strings.Join(shown, "; ")
	if more := len(lines) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	e.add(check, CheckWarning, "The status command says what to do about each.", "%d of %d are not Ready: %s", len(lines), all, text)
}
