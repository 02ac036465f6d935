"""Invented names of artists, albums and tracks: a different one for every number."""

from math import gcd


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES = _words(
    "Amber Borrowed Brass Broken Careful Cedar Copper Crooked Distant Dusty Early Electric Empty "
    "Faded Foreign Gentle Golden Granite Half Hidden Hollow Humble Indigo Iron Ivory Last Late "
    "Little Lonesome Lost Midnight Modern Northern Paper Patient Pale Plastic Quiet Restless "
    "Scarlet Second Secret Silver Sleeping Slow Southern Spare Static Stolen Summer Tall Thirsty "
    "Velvet Wandering Western Wild Winter Wooden Yellow"
)
_NOUNS = _words(
    "Almanac Anchors Antelope Arcade Avenue Balcony Beacons Bicycles Border Bridge Canyon Carousel "
    "Chapel Compass Corridor District Engines Equator Factory Ferry Fields Foxes Garden Gallery "
    "Harbour Horses Island Kitchens Ladder Lanterns Letters Machines Magpies Market Meridian "
    "Monument Museum Neighbours Orchard Outpost Parade Passengers Pilots Planet Postcards Railway "
    "Rivers Satellite Shadows Signal Sparrows Station Swimmers Theatre Tides Tigers Tower Valley "
    "Weather Window"
)
_FIRST = _words(
    "Ada Alma Anton Basil Bruno Carla Cecil Clara Dario Della Edwin Elsa Esme Felix Flora Greta "
    "Hazel Hugo Ida Ines Jonas Juno Kira Leo Lena Lucio Mabel Marco Mina Nadia Nico Nora Olga "
    "Oscar Otto Pilar Quentin Rosa Rufus Selma Silas Stella Theo Tilda Ursula Vera Viktor "
    "Wanda Yuri Zora"
)
_LAST = _words(
    "Abbot Aldous Barlow Bellamy Bexley Calder Carrow Dunmore Eastlake Ellery Fairburn Farrow "
    "Galloway Garrick Hallam Harrow Holloway Ingram Jessop Kestrel Lockhart Lorimer Marlow Merrick "
    "Netherby Norwood Oakes Okoro Pell Penrose Quill Ransome Redfern Rowan Sable Sinclair Stroud "
    "Tamsin Thorne Underhill Vance Varga Wescott Whitlock Wilder Winslow Yarrow Zeller"
)
_VERBS = _words(
    "Leaving Counting Drawing Crossing Finding Holding Burning Following Waking Chasing Losing "
    "Painting Reading Watching Building Calling Carrying Catching Dreaming Forgetting Hearing "
    "Keeping Learning Meeting Naming Opening Passing Remembering Sailing Selling Sharing Stealing "
    "Telling Trading Turning Visiting Waiting Walking Winning Writing"
)
_THINGS = _words(
    "August Sunday Avalanche Echoes Lightning Thunder Honey Smoke Stones Feathers Mirrors Maps "
    "Clouds Snow Rain Roads Rooms Stars Strangers Trains Waves Whispers Colours Circles Diamonds "
    "Doors Fire Glass Ghosts Gravity Home Ivy June Keys Lemons Mercury Mountains Nowhere October "
    "Oceans Paradise Rope Salt Saturn Silence Sparks Sugar Tomorrow Wires Wonder"
)


def artist_name(number: int) -> str:
    """The name of an artist; every third is a person. Different for different numbers."""
    if number % 3 == 1:
        return _pair(number // 3, _FIRST, _LAST)
    name = _pair(number, _ADJECTIVES, _NOUNS)
    return f"The {name}" if number % 3 == 0 else name


def album_name(artist: int, album: int) -> str:
    """The name of an artist's album."""
    return _pair(artist * 7 + album, _ADJECTIVES, _THINGS)


def track_title(number: int) -> str:
    """The title of a track. Different for different numbers."""
    return _pair(number, _VERBS, _THINGS)


def _pair(number: int, first: tuple[str, ...], second: tuple[str, ...]) -> str:
    """The number-th of all pairs of words in a mixed order; a numeral follows when all are used."""
    size = len(first) * len(second)
    # A step that shares no factor with the size visits every pair once.
    step = next(s for s in range(size * 5 // 8 + 13, size) if gcd(s, size) == 1)
    pair = (number * step + 17) % size
    name = f"{first[pair // len(second)]} {second[pair % len(second)]}"
    return name if number < size else f"{name} {number // size + 1}"
