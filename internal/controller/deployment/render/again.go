// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/satchel-dev/satchel/internal/controller/deployment/approval"
	"github.com/satchel-dev/satchel/internal/controller/deployment/snapshot"
	"github.com/satchel-dev/satchel/internal/controller/deployment/stage"
	"github.com/satchel-dev/satchel/internal/spec"
	"github.com/satchel-dev/satchel/internal/spec/leftout"
	"github.com/satchel-dev/satchel/internal/worker/jobs"
)

// longestAgain bounds the conversion of Again, which holds a worker of the controller.
const longestAgain = time.Minute

// Again converts the last applied revision from its artifact, because the file with what was applied last is missing, damaged or
// was written by another version of the controller. Unless the result is exactly what was applied, by its digest, it is an error:
// the spec or an input may have changed since. A digest of another version does not tell: then unproven is true, and the plan has to.
// The inputs have to be read.
func (st *Stage) Again(ctx context.Context, in *Input) (last snapshot.Snapshot, unproven bool, err error) {
	kept := in.Object.Status.Internal.Artifact
	if kept == nil || kept.Material == "" || kept.Revision != in.Object.Status.Applied.Revision {
		return last, false, errors.New("the artifact of the applied revision is not known")
	}
	ctx, cancel := context.WithTimeout(ctx, longestAgain)
	defer cancel()
	owner, err := stage.OwnerOf(kept, in.Object.Namespace)
	if err != nil {
		return last, false, err
	}
	content, err := st.Artifacts.Load(ctx, owner, meta.Artifact{URL: kept.URL, Revision: kept.Revision, Digest: kept.Digest})
	if err != nil {
		return last, false, err
	}
	defer content.Close() //nolint:errcheck // only read from
	given := spec.Given{Contents: in.Resolved.Inputs.Contents, Values: in.Resolved.Inputs.Values}
	converted, err := jobs.Convert(ctx, st.Renderer.Workers, in.Object.Namespace, jobs.Conversion{
		Files: jobs.Files{File: content.File(), Index: content.Index()}, Options: spec.Conversion(in.Object, given, st.Renderer.Manifests),
		Capabilities: askingCapabilities(in.Resolved.Access.Client, false),
	})
	if err != nil {
		return last, false, fmt.Errorf("converting revision %s: %w", kept.Revision, err)
	}
	result, err := converted.Result()
	if err != nil {
		return last, false, err
	}
	in.Rendered.Desired, in.Rendered.Hooks, in.Rendered.Wanted = result.Objects, spec.Hooks(result), result.Certificates
	in.Rendered.PlanDigests.Content = converted.Content
	in.Rendered.Describe(result)
	if err := st.digestMaterial(in); err != nil {
		return last, false, err
	}
	unproven = !approval.IsCurrent(kept.Proof)
	if !unproven && in.Rendered.PlanDigests.Material != kept.Material {
		return last, false, stage.AnotherContent(kept.Revision)
	}
	return snapshot.Snapshot{
		Revision: kept.Revision, Target: in.Listed.Current().Target(),
		Objects: slices.Clone(in.Rendered.Desired), Certificates: in.Rendered.Wanted, Hooks: in.Rendered.Hooks,
		Files: snapshot.Files{Origins: leftout.OriginsOf(in.Rendered.Desired, in.Rendered.Origins)}, // all links count as new: what they held is not known
	}, unproven, nil
}
