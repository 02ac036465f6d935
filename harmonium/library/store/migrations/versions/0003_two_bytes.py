"""Predictions in two bytes each instead of four."""

import numpy as np
import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

prediction = sa.table(
    "prediction",
    sa.column("model_id", sa.BigInteger),
    sa.column("tag", sa.Integer),
    sa.column("block", sa.Integer),
    sa.column("probabilities", sa.LargeBinary),
)


def upgrade() -> None:
    """Store every block anew: 0 to 65534 for probabilities from 0 to 1, 65535 for none."""
    connection = op.get_bind()
    keys = (prediction.c.model_id, prediction.c.tag, prediction.c.block)
    for row in connection.execute(sa.select(*keys)).all():
        here = [key == value for key, value in zip(keys, row, strict=True)]
        data = connection.execute(sa.select(prediction.c.probabilities).where(*here)).scalar_one()
        steps = np.rint(np.frombuffer(data, "<f4").astype(np.float64) * 65534)
        new = np.where(np.isnan(steps), 65535, steps).astype("<u2").tobytes()
        connection.execute(sa.update(prediction).where(*here).values(probabilities=new))
