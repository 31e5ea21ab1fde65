"""Says whether a file is OTLP/JSON as `opentelemetry-proto` understands it; prints its spans as it understood them."""
import base64
import json
import sys
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}


def as_protobuf(span):
    """OTLP/JSON has ids in hexadecimal, protobuf's own JSON in base 64; the rest is the same."""
    for name, length in IDS.items():
        if name in span:
            value = bytes.fromhex(span[name])
            assert len(value) == length, f"{name} has {len(value)} bytes"
            span[name] = base64.b64encode(value).decode()
    return span


def plain(value):
    """An attribute's value."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(each) for each in value.array_value.values]
    return getattr(value, kind)


def read(path):
    """The message in a file."""
    document = json.loads(path.read_text())
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            scope["spans"] = [as_protobuf(span) for span in scope["spans"]]
    return json_format.ParseDict(document, TracesData())


message = read(Path(sys.argv[1]))
spans = []
for resource in message.resource_spans:
    for scope in resource.scope_spans:
        for span in scope.spans:
            spans.append(
                {
                    "trace": span.trace_id.hex(),
                    "id": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "schema": scope.schema_url,
                    "name": span.name,
                    "kind": span.kind,
                    "from": span.start_time_unix_nano,
                    "to": span.end_time_unix_nano,
                    "failed": span.status.code == 2,
                    "attributes": {each.key: plain(each.value) for each in span.attributes},
                    "events": [event.name for event in span.events],
                }
            )
print(json.dumps(spans))
