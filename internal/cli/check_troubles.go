// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// guards looks at what protects the controllers and the approvals.
func (e *examiner) guards(ctx context.Context) {
	e.approvalPolicy(ctx)
	const check = "Network policies"
	policies, err := e.installed(ctx, policiesResource, "")
	switch {
	case err != nil:
		e.add(check, checkUnknown, "", "those of the namespace %s cannot be listed: %s", e.namespace, e.whyNot(err))
	case len(policies) == 0:
		e.add(check, checkWarning, "Apply config/network: without it every Pod of the cluster reaches the artifacts.", "there is none in the namespace %s", e.namespace)
	default:
		e.add(check, checkOK, "", "%d in the namespace %s", len(policies), e.namespace)
	}
}

// approvalPolicyName is the policy of config/admission, and its binding.
const approvalPolicyName = "satchel-approval"

// approvalPolicy looks whether those whom approvals are for can switch them off.
func (e *examiner) approvalPolicy(ctx context.Context) {
	const check, hint = "Approval policy", "Apply config/admission: without it whoever edits a deployment can switch its approval off."
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		_, err := e.one(ctx, schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}, "", approvalPolicyName, false)
		switch {
		case apierrors.IsNotFound(err):
			e.add(check, checkFailed, hint, "%s %s does not exist", resource, approvalPolicyName)
			return
		case err != nil:
			e.add(check, checkUnknown, "", "%s %s cannot be read: %s", resource, approvalPolicyName, e.whyNot(err))
			return
		}
	}
	e.add(check, checkOK, "", "%s is there, and bound", approvalPolicyName)
}

// mostTroubles is how many objects that are not in order are named.
const mostTroubles = 5

// troubles names the deployments and sources that are not in order. That is not Satchel's fault, mostly.
func (e *examiner) troubles(ctx context.Context) {
	for _, k := range kinds {
		check := k.name + "s"
		listed, err := e.list(ctx, k, true, "")
		if err != nil {
			e.add(check, checkUnknown, "", "they cannot be listed: %s", e.whyNot(err))
			continue
		}
		var lines []string
		unseen := 0
		for _, raw := range listed {
			o, err := typed(k, raw)
			if err != nil {
				continue
			}
			s := summarize(o)
			switch {
			case s.ready == "" && e.now.Sub(o.GetCreationTimestamp().Time) > staleAfter:
				unseen++
			case s.ready == metav1.ConditionFalse && !s.suspended:
				lines = append(lines, fmt.Sprintf("%s/%s: %s: %s", o.GetNamespace(), o.GetName(), s.reason, oneLine(s.message, statusWidth)))
			}
		}
		e.addTroubles(check, len(listed), unseen, lines)
	}
}

func (e *examiner) addTroubles(check string, all, unseen int, lines []string) {
	if unseen > 0 {
		e.add(check, checkFailed, "See whether the controller runs, and whether its --watch-label-selector leaves them out.", "%d of %d have never been looked at by a controller", unseen, all)
	}
	if len(lines) == 0 {
		if unseen == 0 {
			e.add(check, checkOK, "", "%d, and none failing", all)
		}
		return
	}
	slices.Sort(lines)
	shown := lines[:min(len(lines), mostTroubles)]
	text := strings.Join(shown, "; ")
	if more := len(lines) - len(shown); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	e.add(check, checkWarning, "The status command says of each what to do.", "%d of %d are not Ready: %s", len(lines), all, text)
}
