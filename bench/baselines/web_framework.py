"""The bare handler's work behind FastAPI and Mangum."""

from typing import Any, Final

from fastapi import FastAPI, HTTPException, Request
from mangum import Mangum

from bench.baselines import bare
from bench.baselines.signatures import RefusedError, verified

app: Final = FastAPI()


@app.post("/webhooks/{source}", status_code=202)
async def receive(source: str, request: Request) -> dict[str, str]:
    """Answers one delivery."""
    body = await request.body()
    try:
        event_id = verified(source, request.headers, body)
    except RefusedError as error:
        raise HTTPException(401) from error
    bare.accept(source, event_id, body)
    return {"event": event_id}


lambda_handler: Final[Any] = Mangum(app, lifespan="off")
