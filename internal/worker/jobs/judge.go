// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/satchel-dev/satchel/internal/apply/plan/crdsafety"
	"github.com/satchel-dev/satchel/internal/worker"
	"github.com/satchel-dev/satchel/internal/worker/child"
)

type judgeRequest struct{ Live, Desired map[string]any }

// Judge is crdsafety.Judge in a worker process. An upgrade that exceeds a limit of the process is not
// judged.
func Judge(ctx context.Context, runner Runner, namespace string, live, desired *unstructured.Unstructured) (crdsafety.Judgement, error) {
	var judgement crdsafety.Judgement
	err := Run(ctx, runner, namespace, judgeKind, nil, judgeRequest{Live: live.Object, Desired: desired.Object}, &judgement)
	var limit *worker.LimitError
	if errors.As(err, &limit) {
		return crdsafety.Judgement{Unjudged: "comparing the two CRDs " + limit.Error()}, nil
	}
	return judgement, err
}

// judgeUpgrade is the job. The limits of the process end it.
func judgeUpgrade(in child.Input) ([]byte, error) {
	return Handle(in, func(request judgeRequest) (crdsafety.Judgement, error) {
		return crdsafety.Judge(context.Background(), &unstructured.Unstructured{Object: request.Live}, &unstructured.Unstructured{Object: request.Desired})
	})
}
